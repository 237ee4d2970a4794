-- What machines did, five minutes at a time, for thirty days. A slot is a number of five minutes since 1970.

CREATE TABLE machine (
    key           INTEGER PRIMARY KEY,
    account       TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    -- The last look at it, JSON.
    latest        TEXT,
    UNIQUE (account, id, generation)
) STRICT;

CREATE TABLE usage (
    slot          INTEGER NOT NULL,
    machine       INTEGER NOT NULL REFERENCES machine (key),
    -- A bit for each minute in which something was seen, the first the lowest.
    seen          INTEGER NOT NULL,
    -- The same of those in which each rented card was.
    whole         INTEGER NOT NULL,
    -- The highest use of a card's memory, in ten-thousandths; NULL when not known.
    memory_peak   INTEGER,
    -- The figures themselves: see `ledger/usage.rs`.
    figures       BLOB NOT NULL,
    PRIMARY KEY (slot, machine)
) STRICT, WITHOUT ROWID;
