-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 4

-- +goose Up
-- What providers keep for workspaces, which made it through this gateway. A hash
-- stands for its id.
CREATE TABLE kept (
  workspace  TEXT NOT NULL,
  hash       BLOB NOT NULL,
  provider   TEXT NOT NULL,
  kind       TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, hash, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_end ON kept (expires_at);
