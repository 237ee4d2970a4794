-- Alerts, from their first sign to their end, and what channels are to be told.

CREATE TABLE alert (
    topic         TEXT NOT NULL,
    -- Its first sign, in microseconds since 1970: of one topic there is one alert at a time.
    since         INTEGER NOT NULL,
    -- Milliseconds since 1970; NULL while it is open.
    ended         INTEGER,
    state         TEXT NOT NULL,
    PRIMARY KEY (topic, since)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_ended ON alert (ended);

CREATE TABLE message (
    id            INTEGER PRIMARY KEY,
    channel       TEXT NOT NULL,
    -- 1 until it is sent or given up.
    waits         INTEGER NOT NULL,
    state         TEXT NOT NULL
) STRICT;

CREATE INDEX message_waits ON message (waits, id);
