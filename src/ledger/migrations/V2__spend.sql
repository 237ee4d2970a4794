-- What money is spent on: instances, storage items, and what providers bill beside them.
CREATE TABLE billable (
    key           INTEGER PRIMARY KEY,
    account       TEXT NOT NULL,
    -- instance, storage or product
    kind          TEXT NOT NULL,
    -- Of a product: its name.
    id            TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    name          TEXT,
    UNIQUE (account, kind, id, generation)
) STRICT;

-- What of it is being charged and stands in no span yet, up to the account's last look. JSON as above.
CREATE TABLE open (
    billable      INTEGER PRIMARY KEY REFERENCES billable (key),
    state         TEXT NOT NULL
) STRICT;
