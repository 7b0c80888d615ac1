-- SPDX-License-Identifier: Apache-2.0
-- Compatible since: 1
-- The schema that each process knows: a migration that would leave a running one
-- behind waits for its end.

-- +goose Up
ALTER TABLE replicas ADD COLUMN schema bigint NOT NULL DEFAULT 1;
