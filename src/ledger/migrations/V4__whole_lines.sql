-- A part of a billed line tells the whole line: lines of a provider may overlap, and the parts of one never do.

ALTER TABLE amount RENAME TO amount_of_lines;

-- Amounts that are no rate over a time: what was billed, and charges of one moment. Of one moment there is one of
-- each sort of charge.
CREATE TABLE amount (
    billable      INTEGER NOT NULL,
    component     INTEGER NOT NULL,
    began         INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    terms         INTEGER NOT NULL,
    -- How much longer the provider's line is that this is a part of, before it and after it; -1 for what is no
    -- provider's.
    billed_before INTEGER NOT NULL,
    billed_after  INTEGER NOT NULL,
    -- Whole millionths of the currency's unit, and 3600000000000ths of one.
    micros        INTEGER NOT NULL,
    rest          INTEGER NOT NULL,
    PRIMARY KEY (billable, component, began, ended, terms, billed_before, billed_after)
) STRICT, WITHOUT ROWID;

-- A line reached to the end of the last of its parts.
INSERT INTO amount
SELECT billable, component, began, ended, terms,
       CASE WHEN line_began IS NULL THEN -1 ELSE began - line_began END,
       CASE WHEN line_began IS NULL THEN -1 ELSE MAX(ended) OVER (
           PARTITION BY billable, component, line_began
       ) - ended END,
       micros, rest
FROM amount_of_lines;

DROP TABLE amount_of_lines;

-- Sums may hold what a part of another line wrote over: they are made anew.
DELETE FROM day_sum;
DELETE FROM month_sum;
UPDATE added_up SET billable = 0 WHERE seat = 1 AND EXISTS (SELECT 1 FROM billable);
