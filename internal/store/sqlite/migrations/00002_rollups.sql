-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 2

-- +goose Up
-- What usage reports are made of: a row for each quarter hour of UTC, later for
-- each day, and group; grp is a digest of the group's columns.
CREATE TABLE rollups (
  workspace    TEXT NOT NULL,
  quarter      INTEGER NOT NULL,
  grp          BLOB NOT NULL,
  key          TEXT NOT NULL,
  model        TEXT NOT NULL,
  provider     TEXT NOT NULL,
  member       TEXT NOT NULL,
  team         TEXT NOT NULL,
  project      TEXT NOT NULL,
  spend        INTEGER NOT NULL,
  tokens       INTEGER NOT NULL,
  requests     INTEGER NOT NULL,
  events       INTEGER NOT NULL,
  first_millis INTEGER NOT NULL,
  last_millis  INTEGER NOT NULL,
  PRIMARY KEY (workspace, quarter, grp)
) STRICT, WITHOUT ROWID;
