-- The processes that watch without a screen, whoever collects.

CREATE TABLE watch (
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    -- Milliseconds since 1970: a sign of life, as of a claim, runs out unless it is renewed.
    until         INTEGER NOT NULL,
    PRIMARY KEY (host, pid)
) STRICT, WITHOUT ROWID;
