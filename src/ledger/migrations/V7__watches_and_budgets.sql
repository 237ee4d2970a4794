-- The processes that watch without a screen, whoever collects, and since when budgets are known.

CREATE TABLE watch (
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    -- Milliseconds since 1970: a sign of life, as of a claim, runs out unless it is renewed.
    until         INTEGER NOT NULL,
    PRIMARY KEY (host, pid)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget (
    name          TEXT PRIMARY KEY,
    -- Milliseconds since 1970: when one of this name was first asked for.
    since         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
