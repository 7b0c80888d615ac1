-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- Instants are Unix microseconds. Ids of requests are 16 bytes and sort by
-- time. Primary keys start with the workspace: no operation crosses workspaces.

-- +goose Up
-- +goose StatementBegin
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- +goose StatementEnd
INSERT INTO meta (name, value) VALUES ('store_secret', randomblob(32));

-- One sequence serves all workspaces; '' is what all of them share.
CREATE TABLE generations (
  workspace  TEXT PRIMARY KEY,
  generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE objects (
  workspace  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  id         TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  body       BLOB NOT NULL,
  source     TEXT NOT NULL,
  origin     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  retired_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace, kind, id)
) STRICT;
CREATE UNIQUE INDEX objects_live ON objects (workspace, kind, name) WHERE retired_at = 0;
CREATE INDEX objects_name ON objects (workspace, kind, name, retired_at);
CREATE INDEX objects_generation ON objects (workspace, generation);

-- Looked up by hash before the workspace is known.
CREATE TABLE key_secrets (
  hash      BLOB PRIMARY KEY,
  workspace TEXT NOT NULL,
  key_id    TEXT NOT NULL,
  not_after INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX key_secrets_key ON key_secrets (workspace, key_id);

CREATE TABLE credentials (
  workspace   TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  credential  TEXT NOT NULL,
  PRIMARY KEY (workspace, provider_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
  workspace TEXT NOT NULL,
  lim       TEXT NOT NULL,
  epoch     INTEGER NOT NULL,
  subject   TEXT NOT NULL,
  win       INTEGER NOT NULL,
  held      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  state     BLOB NOT NULL,
  PRIMARY KEY (workspace, lim, epoch, subject, win)
) STRICT, WITHOUT ROWID;

-- What batches did that the other tables do not say yet (ADR 0007): one row a
-- batch. The other tables are the books as of the last batch that was folded
-- into them; rows are folded and deleted in order.
CREATE TABLE journal (
  seq  INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

-- Open ones alone: settling is the deletion of the row. Rows of reservations and
-- calls are long: in a table WITHOUT ROWID each would fill pages of its own.
-- The book knows every open one and gives it a number: an index of the ids would
-- be one more page to write.
CREATE TABLE reservations (
  seq        INTEGER PRIMARY KEY,
  workspace  TEXT NOT NULL,
  id         BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  body       BLOB NOT NULL
) STRICT;

CREATE TABLE events (
  workspace   TEXT NOT NULL,
  id          BLOB NOT NULL,
  attempt     INTEGER NOT NULL,
  kind        INTEGER NOT NULL,
  admitted_at INTEGER NOT NULL,
  body        BLOB NOT NULL,
  PRIMARY KEY (workspace, id, attempt, kind)
) STRICT, WITHOUT ROWID;
-- Top-ups, credits and adjustments: few among many.
CREATE INDEX events_funds ON events (workspace, id) WHERE kind >= 6;

CREATE TABLE calls (
  workspace TEXT NOT NULL,
  id        BLOB NOT NULL,
  key       TEXT NOT NULL,
  outcome   TEXT NOT NULL,
  code      TEXT NOT NULL,
  ended_at  INTEGER NOT NULL,
  client_id TEXT NOT NULL,
  count     INTEGER NOT NULL,
  body      BLOB NOT NULL,
  PRIMARY KEY (workspace, id)
) STRICT;
CREATE INDEX calls_client ON calls (workspace, client_id, id) WHERE client_id <> '';
CREATE INDEX calls_key ON calls (workspace, key, id);

CREATE TABLE key_quarters (
  workspace TEXT NOT NULL,
  key       TEXT NOT NULL,
  quarter   INTEGER NOT NULL,
  spend     INTEGER NOT NULL,
  tokens    INTEGER NOT NULL,
  requests  INTEGER NOT NULL,
  PRIMARY KEY (workspace, key, quarter)
) STRICT, WITHOUT ROWID;

-- What dropped days of events had added to each counter.
CREATE TABLE closings (
  workspace TEXT NOT NULL,
  lim       TEXT NOT NULL,
  epoch     INTEGER NOT NULL,
  subject   TEXT NOT NULL,
  win       INTEGER NOT NULL,
  day       INTEGER NOT NULL,
  credit    INTEGER NOT NULL,
  kind      INTEGER NOT NULL,
  amount    INTEGER NOT NULL,
  PRIMARY KEY (workspace, lim, epoch, subject, win, day, credit)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  kind      TEXT NOT NULL,
  at        INTEGER NOT NULL,
  body      BLOB NOT NULL,
  attempts  INTEGER NOT NULL DEFAULT 0,
  next_at   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_next ON outbox (next_at);

CREATE TABLE audit (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  at        INTEGER NOT NULL,
  actor     TEXT NOT NULL,
  action    TEXT NOT NULL,
  kind      TEXT NOT NULL,
  id        TEXT NOT NULL,
  name      TEXT NOT NULL,
  before    BLOB,
  after     BLOB
) STRICT;
CREATE INDEX audit_workspace ON audit (workspace, seq);
