-- When a resource was created: a text, to the last digit that its provider tells, since another machine may come
-- back under the id of one that is gone.
ALTER TABLE resource ADD COLUMN created_at TEXT;

UPDATE resource SET created_at = json_extract(state, '$.row.created_at')
WHERE CASE WHEN json_valid(state) THEN json_type(state, '$.row.created_at') END = 'text';

-- All that is asked of what is gone stands in it.
DROP INDEX resource_by_end;
CREATE INDEX resource_by_end ON resource (gone_at, account, kind, id, generation, created_at);

-- The books. Times and `state` are as above; a day is written 20261130, a month 202611.

-- One an account that ever spent anything.
CREATE TABLE book (
    key           INTEGER PRIMARY KEY,
    account       TEXT NOT NULL UNIQUE
) STRICT;

-- What money is spent on: instances, storage items, and what providers bill beside them. Names stand in
-- `resource`.
CREATE TABLE billable (
    key           INTEGER PRIMARY KEY,
    book          INTEGER NOT NULL REFERENCES book (key),
    -- instance, storage or product
    kind          TEXT NOT NULL,
    -- Of a product: its name.
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    -- When its first entry begins.
    since         INTEGER,
    -- The lines that it has spans of, a bit each.
    lines         INTEGER NOT NULL,
    -- No amount of it stands for a longer time; NULL while it has none.
    longest       INTEGER,
    UNIQUE (book, kind, id, generation)
) STRICT;

CREATE INDEX billable_by_start ON billable (book, since);

-- What of it is being charged and stands in no span yet, up to the account's last look. JSON as above.
CREATE TABLE open (
    billable      INTEGER PRIMARY KEY REFERENCES billable (key),
    state         TEXT NOT NULL
) STRICT;

-- All that sums tell apart, under one number.
CREATE TABLE terms (
    key           INTEGER PRIMARY KEY,
    component     INTEGER NOT NULL,
    charge        INTEGER NOT NULL,
    wasted        INTEGER NOT NULL CHECK (wasted IN (0, 1)),
    project       TEXT,
    gpus          INTEGER NOT NULL,
    currency      TEXT NOT NULL,
    evidence      INTEGER NOT NULL,
    -- 0: it counts; 1: it was billed; 2: the provider's list of all that it billed disproves it.
    replaced      INTEGER NOT NULL CHECK (replaced IN (0, 1, 2))
) STRICT;

CREATE INDEX terms_by_sort ON terms (project, currency, component);

-- Times charged at a rate. Those of one line (a component and a sort of charge) never overlap.
CREATE TABLE span (
    billable      INTEGER NOT NULL,
    line          INTEGER NOT NULL,
    began         INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    terms         INTEGER NOT NULL,
    -- 1e-12 of the currency's unit an hour.
    rate          INTEGER NOT NULL,
    PRIMARY KEY (billable, line, began)
) STRICT, WITHOUT ROWID;

-- Amounts that are no rate over a time: what was billed, and charges of one moment.
CREATE TABLE amount (
    billable      INTEGER NOT NULL,
    component     INTEGER NOT NULL,
    began         INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    terms         INTEGER NOT NULL,
    -- When the provider's line begins that this is a part of; NULL for what is no provider's.
    line_began    INTEGER,
    -- Whole millionths of the currency's unit, and 3600000000000ths of one.
    micros        INTEGER NOT NULL,
    rest          INTEGER NOT NULL,
    PRIMARY KEY (billable, component, began, ended, terms)
) STRICT, WITHOUT ROWID;

-- For which times a book has all that the provider billed.
CREATE TABLE imported (
    book          INTEGER NOT NULL,
    began         INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    PRIMARY KEY (book, began)
) STRICT, WITHOUT ROWID;

-- Sums of all that is in `span` and `amount`. Their terms have no GPUs.
CREATE TABLE day_sum (
    day           INTEGER NOT NULL,
    book          INTEGER NOT NULL,
    terms         INTEGER NOT NULL,
    micros        INTEGER NOT NULL,
    rest          INTEGER NOT NULL,
    gpu_ms        INTEGER NOT NULL,
    PRIMARY KEY (day, book, terms)
) STRICT, WITHOUT ROWID;

CREATE TABLE month_sum (
    billable      INTEGER NOT NULL,
    month         INTEGER NOT NULL,
    terms         INTEGER NOT NULL,
    micros        INTEGER NOT NULL,
    rest          INTEGER NOT NULL,
    gpu_ms        INTEGER NOT NULL,
    PRIMARY KEY (billable, month, terms)
) STRICT, WITHOUT ROWID;

-- In which zone the sums' days begin, and the last billable that they hold.
CREATE TABLE added_up (
    seat          INTEGER PRIMARY KEY CHECK (seat = 1),
    zone          TEXT NOT NULL,
    billable      INTEGER NOT NULL
) STRICT;

INSERT INTO added_up (seat, zone, billable) VALUES (1, 'UTC', 9223372036854775807);

-- Readings of balances: about one an hour, and those before and after each rise. Amounts are decimals.
CREATE TABLE balance (
    book          INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    currency      TEXT NOT NULL,
    cash          TEXT NOT NULL,
    voucher       TEXT,
    PRIMARY KEY (book, at)
) STRICT, WITHOUT ROWID;
