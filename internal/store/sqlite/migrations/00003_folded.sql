-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 3

-- +goose Up
-- How much of the journal the other tables have in them, and which files are the
-- journal (ADR 0013). Batches are in those; table journal is where they were
-- before, and stays empty.
CREATE TABLE folded (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  through INTEGER NOT NULL,
  journal BLOB NOT NULL,
  open    INTEGER NOT NULL
) STRICT;
INSERT INTO folded (one, through, journal, open) VALUES (1, 0, x'', 0);
