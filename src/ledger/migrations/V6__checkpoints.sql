-- Verified checkpoints, and what is to happen to an instance by itself: leases and guards.

CREATE TABLE copy (
    -- The action that made it.
    op            INTEGER PRIMARY KEY,
    account       TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    -- Milliseconds since 1970.
    verified_at   INTEGER NOT NULL,
    -- When it was deleted to make room for later ones; NULL while it is there.
    thinned_at    INTEGER,
    state         TEXT NOT NULL
) STRICT;

CREATE INDEX copy_of ON copy (account, id, generation, verified_at);

CREATE TABLE lease (
    id            INTEGER PRIMARY KEY,
    -- Milliseconds since 1970; NULL while it is in force.
    ended         INTEGER,
    state         TEXT NOT NULL
) STRICT;

CREATE INDEX lease_ended ON lease (ended);

-- What guards are called for by, each on one instance: written anew as a whole by whoever collects.
CREATE TABLE guard_watch (
    guard         TEXT NOT NULL,
    account       TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    state         TEXT NOT NULL,
    PRIMARY KEY (guard, account, id, generation)
) STRICT;

-- What people forbid guards: the last word on each instance, by any process.
CREATE TABLE veto (
    account       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    -- Milliseconds since 1970.
    said_at       INTEGER NOT NULL,
    state         TEXT NOT NULL,
    PRIMARY KEY (account, kind, id, generation)
) STRICT;
