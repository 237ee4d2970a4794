-- Verified checkpoints, and leases: what is to happen to an instance by itself.

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
