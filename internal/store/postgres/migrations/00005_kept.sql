-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- What providers keep for workspaces, which made it through this gateway. A hash
-- stands for its id.

-- +goose Up
CREATE TABLE kept (
  workspace  text COLLATE "C" NOT NULL,
  hash       bytea NOT NULL,
  provider   text COLLATE "C" NOT NULL,
  kind       text NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (workspace, hash, provider)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX kept_end ON kept (expires_at);
