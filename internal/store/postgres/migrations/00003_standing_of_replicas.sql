-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- What a process says of itself besides that it lives: which configuration file
-- it has applied, when, and how far its clock is from the database's.

-- +goose Up
ALTER TABLE replicas
  ADD COLUMN file          text NOT NULL DEFAULT '',
  ADD COLUMN applied_at    bigint NOT NULL DEFAULT 0,
  ADD COLUMN offset_micros bigint NOT NULL DEFAULT 0;
