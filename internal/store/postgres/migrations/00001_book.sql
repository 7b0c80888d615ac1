-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- Instants are Unix microseconds. Ids of requests are 16 bytes that sort by
-- time. Every primary key starts with the workspace, but for those of what has
-- none: no operation crosses workspaces, so a workspace is the unit of sharding.
-- Text is compared by bytes, as the book itself compares it.

-- +goose Up
CREATE TABLE meta (
  name  text COLLATE "C" PRIMARY KEY,
  value bytea NOT NULL
);

-- One sequence serves all workspaces; '' is what all of them share.
CREATE TABLE generations (
  workspace  text COLLATE "C" PRIMARY KEY,
  generation bigint NOT NULL
);

CREATE TABLE objects (
  workspace  text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  generation bigint NOT NULL,
  epoch      bigint NOT NULL,
  body       bytea NOT NULL,
  source     text NOT NULL,
  origin     text NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  retired_at bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace, kind, id)
);
CREATE UNIQUE INDEX objects_live ON objects (workspace, kind, name) WHERE retired_at = 0;
CREATE INDEX objects_name ON objects (workspace, kind, name, retired_at);
CREATE INDEX objects_generation ON objects (workspace, generation);

-- Looked up by hash before the workspace is known.
CREATE TABLE key_secrets (
  hash      bytea PRIMARY KEY,
  workspace text COLLATE "C" NOT NULL,
  key_id    text COLLATE "C" NOT NULL,
  not_after bigint NOT NULL DEFAULT 0
);
CREATE INDEX key_secrets_key ON key_secrets (workspace, key_id);

CREATE TABLE credentials (
  workspace   text COLLATE "C" NOT NULL,
  provider_id text COLLATE "C" NOT NULL,
  credential  text NOT NULL,
  PRIMARY KEY (workspace, provider_id)
);

-- Rows change with every request: half of each page stays free, so that a new
-- version finds room beside the old one and no index is touched. Kind 0 is a row
-- that only makes its key lockable: it means nothing.
CREATE TABLE counters (
  workspace text COLLATE "C" NOT NULL,
  lim       text COLLATE "C" NOT NULL,
  epoch     bigint NOT NULL,
  subject   text COLLATE "C" NOT NULL,
  win       bigint NOT NULL,
  kind      smallint NOT NULL DEFAULT 0,
  settled   bigint NOT NULL DEFAULT 0,
  held      bigint NOT NULL DEFAULT 0,
  warned    integer NOT NULL DEFAULT 0,
  at        bigint NOT NULL DEFAULT 0,
  state     bytea NOT NULL DEFAULT '',
  PRIMARY KEY (workspace, lim, epoch, subject, win)
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 500,
  autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE counters ALTER COLUMN state SET STORAGE MAIN;

-- Open ones alone: settling is the deletion of the row. version counts changes. The index on expires_at
-- is a plain one: a partial index invites plans that walk its dead entries.
CREATE TABLE reservations (
  workspace  text COLLATE "C" NOT NULL,
  id         uuid NOT NULL,
  version    bigint NOT NULL DEFAULT 1,
  expires_at bigint NOT NULL,
  process    text NOT NULL,
  body       bytea NOT NULL,
  PRIMARY KEY (workspace, id)
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 500,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX reservations_expires ON reservations (expires_at);

-- A partition for each UTC day of the id, made ahead by the book; what no day
-- holds lies in the default one.
CREATE TABLE events (
  workspace   text COLLATE "C" NOT NULL,
  id          uuid NOT NULL,
  attempt     integer NOT NULL,
  kind        smallint NOT NULL,
  at          bigint NOT NULL,
  admitted_at bigint NOT NULL,
  key         text COLLATE "C" NOT NULL,
  model       text COLLATE "C" NOT NULL,
  spend       bigint NOT NULL,
  tokens      bigint NOT NULL,
  body        bytea NOT NULL,
  PRIMARY KEY (workspace, id, attempt, kind)
) PARTITION BY RANGE (id);
-- Top-ups, credits and adjustments: few among many.
CREATE INDEX events_funds ON events (workspace, id) WHERE kind >= 6 AND kind <= 8;
CREATE TABLE events_default PARTITION OF events DEFAULT;

CREATE TABLE calls (
  workspace text COLLATE "C" NOT NULL,
  id        uuid NOT NULL,
  key       text COLLATE "C" NOT NULL,
  outcome   text COLLATE "C" NOT NULL,
  code      text NOT NULL,
  at        bigint NOT NULL,
  ended_at  bigint NOT NULL,
  model     text NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  count     bigint NOT NULL,
  body      bytea NOT NULL,
  PRIMARY KEY (workspace, id)
) PARTITION BY RANGE (id);
-- The workspace does not lead them, so that none is taken for a search by id.
CREATE INDEX calls_client ON calls (client_id, workspace, id) WHERE client_id <> '';
CREATE INDEX calls_key ON calls (key, workspace, id);
CREATE TABLE calls_default PARTITION OF calls DEFAULT;

CREATE TABLE key_quarters (
  workspace text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  quarter   bigint NOT NULL,
  spend     bigint NOT NULL,
  tokens    bigint NOT NULL,
  requests  bigint NOT NULL,
  PRIMARY KEY (workspace, key, quarter)
) WITH (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_cost_delay = 0
);

-- What dropped days of events had added to each counter.
CREATE TABLE closings (
  workspace text COLLATE "C" NOT NULL,
  lim       text COLLATE "C" NOT NULL,
  epoch     bigint NOT NULL,
  subject   text COLLATE "C" NOT NULL,
  win       bigint NOT NULL,
  day       integer NOT NULL,
  credit    boolean NOT NULL,
  kind      smallint NOT NULL,
  amount    bigint NOT NULL,
  PRIMARY KEY (workspace, lim, epoch, subject, win, day, credit)
);

CREATE TABLE outbox (
  workspace text COLLATE "C" NOT NULL,
  seq       bigint GENERATED ALWAYS AS IDENTITY,
  kind      text NOT NULL,
  at        bigint NOT NULL,
  body      bytea NOT NULL,
  attempts  integer NOT NULL DEFAULT 0,
  next_at   bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace, seq)
);
CREATE INDEX outbox_next ON outbox (next_at, seq);

CREATE TABLE audit (
  workspace text COLLATE "C" NOT NULL,
  seq       bigint GENERATED ALWAYS AS IDENTITY,
  at        bigint NOT NULL,
  actor     text NOT NULL,
  action    text NOT NULL,
  kind      text NOT NULL,
  id        text NOT NULL,
  name      text NOT NULL,
  before    bytea,
  after     bytea,
  PRIMARY KEY (workspace, seq)
);

-- The processes that share the book: their places and versions for people,
-- seen_at the last instant of a batch, beat_at when they last said that they live.
CREATE TABLE replicas (
  id         text COLLATE "C" PRIMARY KEY,
  name       text NOT NULL DEFAULT '',
  version    text NOT NULL DEFAULT '',
  started_at bigint NOT NULL,
  seen_at    bigint NOT NULL,
  beat_at    bigint NOT NULL DEFAULT 0,
  stopped    boolean NOT NULL DEFAULT false
);
