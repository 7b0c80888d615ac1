// SPDX-License-Identifier: Apache-2.0

package postgres

// Every statement of the book but the migrations (ADR 0010). Those of batches
// take columns as arrays; each is one statement however many rows it has. Rows
// are locked in the order of the arrays, which is that of their keys (ENGINE 5).
//
// Each is written so that there is one way to run it, whatever the planner knows
// of the tables: a LATERAL subquery that locks or has an OFFSET is neither merged
// nor turned around, and ON CONFLICT looks up its own index (ENGINE 12).

const (
	// micros is the primary's clock in Unix microseconds, exact.
	micros = `(extract(epoch from clock_timestamp()) * 1000000)::bigint`

	counterKeys = `unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[]) WITH ORDINALITY
 AS k (workspace, lim, epoch, subject, win, n)`
	counterMatch = `c.workspace = k.workspace AND c.lim = k.lim AND c.epoch = k.epoch AND c.subject = k.subject AND c.win = k.win`

	counterRows = `unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[],
 $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[])`

	claimKeys = `unnest($1::text[], $2::uuid[], $3::bigint[]) AS k (workspace, id, version)`

	openKeys = `unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS k (workspace, id, n)`
)

func columns(types ...uint32) []uint32 { return types }

var (
	stBegin    = &statement{name: "weir_begin", sql: `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`}
	stCommit   = &statement{name: "weir_commit", sql: `COMMIT`}
	stRollback = &statement{name: "weir_rollback", sql: `ROLLBACK`}

	// stRelease lets a commit return before it is on the disk; stFlush commits
	// something of its own, and waits for that.
	stRelease = &statement{name: "weir_release", sql: `SELECT set_config('synchronous_commit', 'off', true)`}
	stFlush   = &statement{name: "weir_flush", sql: `SELECT pg_logical_emit_message(true, 'weir', '')`}

	// stInstant reads the generations and the clock, after everything is locked.
	stInstant = &statement{name: "weir_instant", types: columns(oidTextArray), sql: `SELECT ` + micros + `, k.workspace,
 (SELECT coalesce(max(g.generation), 0) FROM generations g WHERE g.workspace = ANY (ARRAY[k.workspace, '']))
FROM unnest($1::text[]) AS k (workspace)`}

	// stClaim gives no body where the version is the one that the book remembers.
	stClaim = &statement{name: "weir_claim", types: columns(oidTextArray, oidUUIDArray, oidIntArray), sql: `SELECT r.workspace, r.id, r.expires_at, r.version,
 CASE WHEN r.version = k.version THEN NULL ELSE r.body END
FROM ` + claimKeys + `, LATERAL (SELECT * FROM reservations r WHERE r.workspace = k.workspace AND r.id = k.id FOR UPDATE) AS r`}

	// stOpen reads without a lock: of operations whose counters are locked by now.
	stOpen = &statement{name: "weir_open", types: columns(oidTextArray, oidUUIDArray), sql: `SELECT r.workspace, r.id, r.expires_at, r.version, r.body
FROM ` + openKeys + `, LATERAL (SELECT * FROM reservations r WHERE r.workspace = k.workspace AND r.id = k.id OFFSET 0) AS r`}

	stMissing = &statement{name: "weir_missing", types: counterTypes(), sql: `INSERT INTO counters (workspace, lim, epoch, subject, win)
SELECT k.workspace, k.lim, k.epoch, k.subject, k.win FROM ` + counterKeys + ` ORDER BY k.n ON CONFLICT DO NOTHING`}

	stLock = &statement{name: "weir_lock", types: counterTypes(), sql: `SELECT k.n, c.kind, c.settled, c.held, c.warned, c.at, c.state
FROM ` + counterKeys + `, LATERAL (SELECT * FROM counters c WHERE ` + counterMatch + ` FOR UPDATE) AS c`}

	stLook = &statement{name: "weir_look", types: counterTypes(), sql: `SELECT k.n, c.kind, c.settled, c.held, c.warned, c.at, c.state
FROM ` + counterKeys + `, LATERAL (SELECT * FROM counters c WHERE ` + counterMatch + ` OFFSET 0) AS c`}

	stEndings = &statement{name: "weir_endings", types: columns(oidTextArray, oidUUIDArray), sql: `SELECT k.workspace, k.id, e.kind, e.count
FROM ` + openKeys + `, LATERAL (SELECT e.kind, count(*) FROM events e WHERE e.workspace = k.workspace AND e.id = k.id GROUP BY e.kind) AS e`}

	stSwept = &statement{name: "weir_swept", types: columns(oidTextArray, oidUUIDArray), sql: `SELECT ` + callColumns + `
FROM ` + openKeys + `, LATERAL (SELECT * FROM calls c WHERE c.workspace = k.workspace AND c.id BETWEEN k.id AND k.id ORDER BY c.id LIMIT 1) AS c`}

	stQuarters = &statement{name: "weir_quarters", types: columns(oidText, oidText, oidInt), sql: `SELECT quarter, spend, tokens, requests
FROM key_quarters WHERE workspace = $1 AND key = $2 AND quarter >= $3 ORDER BY quarter`}

	// stUpdate: the rows are there, and locked; what conflicts is what is meant.
	stUpdate = &statement{name: "weir_update", types: counterTypes(oidIntArray, oidIntArray, oidIntArray, oidIntArray, oidIntArray, oidByteaArray), sql: `INSERT INTO counters (workspace, lim, epoch, subject, win, kind, settled, held, warned, at, state)
SELECT * FROM ` + counterRows + `
ON CONFLICT (workspace, lim, epoch, subject, win) DO UPDATE SET kind = excluded.kind, settled = excluded.settled, held = excluded.held,
 warned = excluded.warned, at = excluded.at, state = excluded.state`}

	stReserve = &statement{name: "weir_reserve", types: columns(oidTextArray, oidUUIDArray, oidIntArray, oidTextArray, oidByteaArray), sql: `INSERT INTO reservations (workspace, id, expires_at, process, body)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[], $5::bytea[])`}

	// stReserveOne is for one row, which is read sooner than arrays.
	stReserveOne = &statement{name: "weir_reserve_one", types: columns(oidText, oidUUID, oidInt, oidText, oidBytea), sql: `INSERT INTO reservations (workspace, id, expires_at, process, body)
VALUES ($1, $2, $3, $4, $5)`}

	stReplace = &statement{name: "weir_replace", types: columns(oidTextArray, oidUUIDArray, oidIntArray, oidByteaArray), sql: `INSERT INTO reservations (workspace, id, expires_at, process, body)
SELECT k.workspace, k.id, k.expires_at, '', k.body FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bytea[]) AS k (workspace, id, expires_at, body)
ON CONFLICT (workspace, id) DO UPDATE SET version = reservations.version + 1, expires_at = excluded.expires_at, body = excluded.body`}

	stRemove = &statement{name: "weir_remove", types: columns(oidTextArray, oidUUIDArray), sql: `DELETE FROM reservations WHERE ctid = ANY (ARRAY(
 SELECT r.ctid FROM ` + openKeys + `, LATERAL (SELECT r.ctid FROM reservations r WHERE r.workspace = k.workspace AND r.id = k.id OFFSET 0) AS r))`}

	stEvents = &statement{name: "weir_events", types: columns(oidTextArray, oidUUIDArray, oidIntArray, oidIntArray, oidIntArray, oidIntArray, oidTextArray, oidTextArray, oidIntArray, oidIntArray, oidByteaArray), sql: `INSERT INTO events (workspace, id, attempt, kind, at, admitted_at, key, model, spend, tokens, body)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::bytea[])`}

	stCalls = &statement{name: "weir_calls", types: callTypes(), sql: insertCalls}
	// stEnd writes calls of reservations as their rows have them: a call's body is
	// what its end has added, and then the reservation's, which need not travel.
	stEnd = &statement{name: "weir_end", types: callTypes(), sql: endCalls}
	// The call of an ended request replaces a refusal record of its first sending,
	// whose answer was lost. That is rare, and looking for one takes a quarter of
	// the time that the insert takes: these run when the others have failed.
	stReplaceCalls = &statement{name: "weir_replace_calls", types: callTypes(), sql: insertCalls + replaceCalls}
	stReplaceEnd   = &statement{name: "weir_replace_end", types: callTypes(), sql: endCalls + replaceCalls}
	stRefusals     = &statement{name: "weir_refusals", types: callTypes(), sql: insertCalls + `
ON CONFLICT (workspace, id) DO UPDATE SET count = calls.count + excluded.count WHERE calls.outcome = 'refused'`}

	// Sums saturate (SPEC section 1).
	stAddQuarters = &statement{name: "weir_add_quarters", types: columns(oidTextArray, oidTextArray, oidIntArray, oidIntArray, oidIntArray, oidIntArray), sql: `INSERT INTO key_quarters AS q (workspace, key, quarter, spend, tokens, requests)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
` + addQuarter}

	stNotices = &statement{name: "weir_notices", types: columns(oidTextArray, oidTextArray, oidIntArray, oidByteaArray), sql: `INSERT INTO outbox (workspace, kind, at, body)
SELECT k.workspace, k.kind, k.at, k.body FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])
 WITH ORDINALITY AS k (workspace, kind, at, body, n) ORDER BY k.n`}

	stExpectOpen = &statement{name: "weir_expect_open", types: columns(oidTextArray, oidUUIDArray, oidIntArray), sql: `SELECT CASE WHEN count(*) = cardinality($1::text[]) THEN 0
 ELSE ('weir: harmless, a reservation changed meanwhile; ' || count(*) || ' as expected')::bigint END
FROM ` + claimKeys + `, LATERAL (SELECT r.id FROM reservations r WHERE r.workspace = k.workspace AND r.id = k.id AND r.version = k.version
  FOR UPDATE) AS r`}
)

// statements are all that a connection prepares.
func statements() []*statement {
	return []*statement{
		stBegin, stCommit, stRollback, stRelease, stFlush, stInstant, stClaim, stOpen, stMissing, stLock, stLook, stEndings, stSwept, stQuarters,
		stUpdate, stReserve, stReserveOne, stReplace, stRemove, stEvents, stCalls, stEnd, stReplaceCalls, stReplaceEnd, stRefusals, stAddQuarters, stNotices,
		stExpectOpen, stExpect, stExpectRead, stChange,
	}
}

func counterTypes(more ...uint32) []uint32 {
	return append(columns(oidTextArray, oidTextArray, oidIntArray, oidTextArray, oidIntArray), more...)
}

func callTypes() []uint32 {
	return columns(oidTextArray, oidUUIDArray, oidTextArray, oidTextArray, oidTextArray, oidIntArray, oidIntArray, oidTextArray, oidTextArray, oidIntArray, oidByteaArray)
}

const addQuarter = `ON CONFLICT (workspace, key, quarter) DO UPDATE SET
 spend = least(greatest(q.spend::numeric + excluded.spend, -9223372036854775807), 9223372036854775807)::bigint,
 tokens = least(greatest(q.tokens::numeric + excluded.tokens, -9223372036854775807), 9223372036854775807)::bigint,
 requests = q.requests + excluded.requests`

const endCalls = `INSERT INTO calls (workspace, id, key, outcome, code, at, ended_at, model, client_id, count, body)
SELECT k.workspace, k.id, k.key, k.outcome, k.code, k.at, k.ended_at, k.model, k.client_id, k.count, k.body ||
 (SELECT r.body FROM reservations r WHERE r.workspace = k.workspace AND r.id = k.id)
FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bytea[])
 AS k (workspace, id, key, outcome, code, at, ended_at, model, client_id, count, body)`

const replaceCalls = `
ON CONFLICT (workspace, id) DO UPDATE SET key = excluded.key, outcome = excluded.outcome, code = excluded.code, at = excluded.at,
 ended_at = excluded.ended_at, model = excluded.model, client_id = excluded.client_id, count = excluded.count, body = excluded.body`

const insertCalls = `INSERT INTO calls (workspace, id, key, outcome, code, at, ended_at, model, client_id, count, body)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bytea[])`

const (
	sqlServer = `SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'),
 pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, current_setting('synchronous_commit'),
 EXISTS (SELECT FROM pg_stat_replication) AND (current_setting('synchronous_standby_names') = '' OR current_setting('synchronous_commit') = 'local')`
	sqlRights = `SELECT t.name, r.name
FROM unnest(ARRAY['meta', 'generations', 'objects', 'key_secrets', 'credentials', 'counters', 'reservations', 'events', 'calls',
 'key_quarters', 'closings', 'outbox', 'audit', 'replicas', 'rollups', 'rolling']) AS t (name), unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r (name)
WHERE NOT has_table_privilege(t.name, r.name)
UNION ALL SELECT 'schema ' || current_schema(), 'CREATE' WHERE NOT $1 AND NOT has_schema_privilege(current_schema(), 'CREATE')`
	sqlTablesMissing = `SELECT k.name FROM unnest($1::text[]) AS k (name)
WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.relname = k.name AND pg_table_is_visible(c.oid)) ORDER BY k.name`
	// Names of one table's days sort by date.
	sqlOldDays = `SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent JOIN unnest($1::text[]) AS k (last) ON split_part(k.last, '_', 1) = p.relname
WHERE pg_table_is_visible(c.oid) AND c.relname ~ '_[0-9]{8}$' AND c.relname COLLATE "C" < k.last ORDER BY 1`

	sqlBounds = `SELECT set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $1, true)`

	sqlLastSeen = `SELECT coalesce(max(seen_at), 0) FROM replicas`
	// sqlAcceptClock makes the store believe in an earlier time.
	sqlAcceptClock = `UPDATE replicas SET seen_at = least(seen_at, $1)`

	sqlExpired = `SELECT workspace, id, expires_at, body FROM reservations WHERE expires_at < $1
ORDER BY expires_at, id LIMIT $2 FOR UPDATE SKIP LOCKED`
	sqlRunning = `SELECT workspace, id, expires_at, body FROM reservations WHERE workspace = $1 AND id = $2`

	objectColumns = `workspace, kind, id, name, version, generation, epoch, body, source, origin, created_at, updated_at, retired_at`
	sqlObject     = `SELECT ` + objectColumns + ` FROM objects WHERE workspace = $1 AND kind = $2 AND id = $3`
	sqlByName     = `SELECT ` + objectColumns + ` FROM objects WHERE workspace = $1 AND kind = $2 AND name = $3
ORDER BY retired_at = 0 DESC, retired_at DESC, generation DESC LIMIT 1`
	sqlListObjects = `SELECT ` + objectColumns + ` FROM objects
WHERE workspace = $1 AND kind = $2 AND retired_at = 0 AND name > $3 ORDER BY name LIMIT $4`
	sqlSinceObjects = `SELECT ` + objectColumns + ` FROM objects
WHERE workspace IN ($1, '') AND generation > $2 AND ($2 > 0 OR retired_at = 0 AND kind <> $3) ORDER BY kind, name, id`
	sqlGeneration = `SELECT coalesce(max(generation), 0) FROM generations WHERE workspace IN ($1, '')`

	// Changes come one after the other: a generation is never seen before a lower
	// one that is still to be committed. Readers wait for nobody.
	sqlLockTimeout     = `SELECT set_config('lock_timeout', $1, true)`
	sqlLockGenerations = `LOCK TABLE generations IN SHARE ROW EXCLUSIVE MODE`
	sqlNextGeneration  = `SELECT coalesce(max(generation), 0) + 1 FROM generations`
	sqlPutGeneration   = `INSERT INTO generations (workspace, generation) VALUES ($1, $2)
ON CONFLICT (workspace) DO UPDATE SET generation = excluded.generation`
	sqlPutObject = `INSERT INTO objects (` + objectColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (workspace, kind, id) DO UPDATE SET name = excluded.name, version = excluded.version, generation = excluded.generation,
 epoch = excluded.epoch, body = excluded.body, source = excluded.source, origin = excluded.origin, created_at = excluded.created_at,
 updated_at = excluded.updated_at, retired_at = excluded.retired_at`
	sqlNameTaken = `SELECT id FROM objects WHERE workspace = $1 AND kind = $2 AND name = $3 AND retired_at = 0 AND id <> $4`

	sqlKeySecret = `SELECT workspace, key_id, not_after FROM key_secrets WHERE hash = $1`
	sqlPutSecret = `INSERT INTO key_secrets (hash, workspace, key_id, not_after) VALUES ($1, $2, $3, $4)
ON CONFLICT (hash) DO UPDATE SET not_after = excluded.not_after`
	sqlExpireSecrets = `UPDATE key_secrets SET not_after = $1
WHERE workspace = $2 AND key_id = $3 AND (not_after = 0 OR not_after > $1)`

	sqlCredential    = `SELECT credential FROM credentials WHERE workspace = $1 AND provider_id = $2`
	sqlPutCredential = `INSERT INTO credentials (workspace, provider_id, credential) VALUES ($1, $2, $3)
ON CONFLICT (workspace, provider_id) DO UPDATE SET credential = excluded.credential`
	sqlDeleteCredential = `DELETE FROM credentials WHERE workspace = $1 AND provider_id = $2`

	sqlMeta    = `SELECT value FROM meta WHERE name = $1`
	sqlNewMeta = `INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	sqlPutMeta = `INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

	sqlAddAudit = `INSERT INTO audit (workspace, at, actor, action, kind, id, name, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlListAudit = `SELECT seq, workspace, at, actor, action, kind, id, name, before, after FROM audit
WHERE workspace = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`

	sqlReservations = `SELECT workspace, id, expires_at, body FROM reservations ORDER BY workspace, id`
	sqlCounters     = `SELECT workspace, lim, epoch, subject, win, kind, settled, held, warned, at, state FROM counters
WHERE kind <> 0 ORDER BY workspace, lim, epoch, subject, win`
	sqlQuarters = `SELECT workspace, key, quarter, spend, tokens, requests FROM key_quarters ORDER BY workspace, key, quarter`
	sqlClosings = `SELECT workspace, lim, epoch, subject, win, day, credit, kind, amount FROM closings
ORDER BY workspace, lim, epoch, subject, win, day, credit`
	// What may be dropped (RES-6) is found workspace by workspace, behind where the
	// last step has looked.
	sqlNextCaller = `SELECT coalesce(min(workspace), '') FROM calls WHERE workspace > $1`
	sqlCallAges   = `SELECT id, ended_at FROM calls WHERE workspace = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4`
	sqlDropCalls  = `DELETE FROM calls WHERE workspace = $1 AND id = ANY ($2::uuid[]) AND ended_at < $3 AND id BETWEEN $4 AND $5`
	sqlNextShop   = `SELECT coalesce(min(workspace), '') FROM events WHERE workspace > $1`
	// A request goes with all its events or stays with all; entries stay (kind 6
	// and above), and what is in no roll-up yet.
	sqlOldEvents = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = $1 AND id > $2 AND id < $3 AND kind < 6 ORDER BY id, attempt, kind LIMIT $4`
	sqlLateEvents = `SELECT DISTINCT id FROM events WHERE tx >= $1 AND workspace = $2 AND id BETWEEN $3 AND $4`
	sqlDropEvents = `DELETE FROM events WHERE workspace = $1 AND id = ANY ($2::uuid[]) AND id BETWEEN $3 AND $4 AND kind < 6`
	sqlAddClosing = `INSERT INTO closings AS c (workspace, lim, epoch, subject, win, day, credit, kind, amount)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (workspace, lim, epoch, subject, win, day, credit) DO UPDATE SET
 amount = least(greatest(c.amount::numeric + excluded.amount, -9223372036854775808), 9223372036854775807)::bigint`
	sqlNextKey     = `SELECT workspace, key FROM key_quarters WHERE (workspace, key) > ($1, $2) ORDER BY workspace, key LIMIT 1`
	sqlOldQuarters = `SELECT workspace, key, quarter, spend, tokens, requests FROM key_quarters
WHERE workspace = $1 AND key = $2 AND quarter >= $3 AND quarter < $4 AND quarter % $5 <> 0 ORDER BY quarter LIMIT $6 FOR UPDATE`
	sqlNextRolled = `SELECT coalesce(min(workspace), '') FROM rollups WHERE workspace > $1`
	sqlOldRollups = `SELECT ` + rollupColumns + ` FROM rollups
WHERE workspace = $1 AND quarter >= $2 AND quarter < $3 AND quarter % $4 <> 0 ORDER BY quarter LIMIT $5 FOR UPDATE`
	sqlDropRollups = `DELETE FROM rollups r USING unnest($2::bigint[], $3::bytea[]) AS k (quarter, grp)
WHERE r.workspace = $1 AND r.quarter = k.quarter AND r.grp = k.grp`
	sqlAddQuarter = `INSERT INTO key_quarters AS q (workspace, key, quarter, spend, tokens, requests)
VALUES ($1, $2, $3, $4, $5, $6) ` + addQuarter
	sqlDropQuarter = `DELETE FROM key_quarters WHERE workspace = $1 AND key = $2 AND quarter = $3`
	sqlDropNotices = `DELETE FROM outbox WHERE (workspace, seq) IN (SELECT workspace, seq FROM outbox WHERE at < $1 LIMIT $2)`

	sqlOutbox = `SELECT body FROM outbox ORDER BY seq`

	eventColumns  = `workspace, id, attempt, kind, at, admitted_at, key, model, spend, tokens, body`
	sqlEvents     = `SELECT ` + eventColumns + ` FROM events ORDER BY workspace, id, attempt, kind`
	sqlCallEvents = `SELECT ` + eventColumns + ` FROM events WHERE workspace = $1 AND id = $2 ORDER BY at, kind, attempt`
	sqlFundEvents = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = $1 AND kind >= 6 AND kind <= 8 AND id < $2 ORDER BY id DESC LIMIT $3`
	callColumns    = `c.workspace, c.id, c.key, c.outcome, c.code, c.at, c.ended_at, c.model, c.client_id, c.count, c.body`
	sqlAllCalls    = `SELECT ` + callColumns + ` FROM calls c ORDER BY workspace, id`
	sqlCall        = `SELECT ` + callColumns + ` FROM calls c WHERE workspace = $1 AND id = $2`
	sqlClientCalls = `SELECT ` + callColumns + ` FROM calls c
WHERE workspace = $1 AND client_id = $2 AND client_id <> '' ORDER BY id DESC LIMIT $3`
	sqlCalls = `SELECT ` + callColumns + ` FROM calls c
WHERE workspace = $1 AND id < $2 AND ($3 = '' OR outcome = $3) ORDER BY id DESC LIMIT $4`
	sqlKeyCalls = `SELECT ` + callColumns + ` FROM calls c
WHERE workspace = $1 AND id < $2 AND ($3 = '' OR outcome = $3) AND key = $5 ORDER BY id DESC LIMIT $4`
)
