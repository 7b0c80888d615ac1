-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- tx orders events so that none is passed over: the transaction that wrote it,
-- counted from where rolling.base says. What is there already comes first.

-- +goose Up
ALTER TABLE events ADD COLUMN tx bigint NOT NULL DEFAULT 0;
ALTER TABLE events ALTER COLUMN tx SET DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX events_tx ON events (tx);

-- What usage reports are made of: a row for each quarter hour of UTC, later for
-- each day, and group; grp is a digest of the group's columns.
CREATE TABLE rollups (
  workspace    text COLLATE "C" NOT NULL,
  quarter      bigint NOT NULL,
  grp          bytea NOT NULL,
  key          text COLLATE "C" NOT NULL,
  model        text COLLATE "C" NOT NULL,
  provider     text COLLATE "C" NOT NULL,
  member       text COLLATE "C" NOT NULL,
  team         text COLLATE "C" NOT NULL,
  project      text COLLATE "C" NOT NULL,
  spend        bigint NOT NULL,
  tokens       bigint NOT NULL,
  requests     bigint NOT NULL,
  events       bigint NOT NULL,
  first_millis bigint NOT NULL,
  last_millis  bigint NOT NULL,
  PRIMARY KEY (workspace, quarter, grp)
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000
);

-- One row, which whoever rolls up has locked: every event of before through is in
-- rollups, no other one is. cluster is the server that counts the transactions.
CREATE TABLE rolling (
  one     boolean PRIMARY KEY DEFAULT true CHECK (one),
  through bigint NOT NULL,
  base    bigint NOT NULL,
  cluster text NOT NULL
) WITH (fillfactor = 10);
INSERT INTO rolling (through, base, cluster) VALUES (0, 0, '');
