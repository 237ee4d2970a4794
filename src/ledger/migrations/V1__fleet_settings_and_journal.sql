-- Times are milliseconds since 1970 (UTC). `state` is JSON: {"v": version, "row": …}.

-- One line an account, as last seen.
CREATE TABLE account (
    name          TEXT PRIMARY KEY,
    provider      TEXT NOT NULL,
    as_of         INTEGER,
    last_complete INTEGER,
    state         TEXT NOT NULL
) STRICT;

-- Instances and storage items, as last seen; gone ones stay.
CREATE TABLE resource (
    account       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    name          TEXT,
    -- NULL for a storage item that is there: it has no phases.
    phase         TEXT,
    first_seen    INTEGER NOT NULL,
    last_seen     INTEGER NOT NULL,
    missing_since INTEGER,
    absences      INTEGER NOT NULL,
    gone_at       INTEGER,
    state         TEXT NOT NULL,
    PRIMARY KEY (account, kind, id, generation)
) STRICT;

CREATE INDEX resource_by_end ON resource (gone_at);

-- What a person set for one resource. It stays when the resource is missing or gone.
CREATE TABLE setting (
    account       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    protected     INTEGER CHECK (protected IN (0, 1)),
    mine          INTEGER CHECK (mine IN (0, 1)),
    project       TEXT,
    PRIMARY KEY (account, kind, id, generation)
) STRICT;

-- Each action as it is now.
CREATE TABLE operation (
    op            INTEGER PRIMARY KEY,
    action        TEXT NOT NULL,
    account       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    began_at      INTEGER NOT NULL,
    began_by      TEXT NOT NULL,
    step          TEXT NOT NULL,
    ended_at      INTEGER,
    -- The process that carries it.
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    state         TEXT NOT NULL
) STRICT;

CREATE INDEX operation_by_end ON operation (ended_at, op);
CREATE INDEX operation_by_start ON operation (began_at, op);

-- Every step of every action, in the order in which they were taken. Nothing here is ever changed.
CREATE TABLE journal (
    entry         INTEGER PRIMARY KEY,
    op            INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    account       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    step          TEXT NOT NULL,
    state         TEXT NOT NULL
) STRICT;

CREATE INDEX journal_by_operation ON journal (op, entry);

-- The one process that polls, writes and acts; at most one line.
CREATE TABLE collector (
    seat          INTEGER PRIMARY KEY CHECK (seat = 1),
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    until         INTEGER NOT NULL
) STRICT;
