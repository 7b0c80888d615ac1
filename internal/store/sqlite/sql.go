// SPDX-License-Identifier: Apache-2.0

package sqlite

// Every statement of the book but the migrations (ADR 0005). Those of the
// writer are prepared once for its connection; rows of an insert are repeated
// by repeat.
const (
	sqlBegin    = `BEGIN IMMEDIATE`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`
	// A snapshot is taken by the first read.
	sqlBeginRead = `BEGIN`
	sqlUnfolded  = `SELECT through + 1 FROM folded`

	sqlCounter = `SELECT held, at, state FROM counters
WHERE workspace = ? AND lim = ? AND epoch = ? AND subject = ? AND win = ?`
	// A replace is the cheapest write of a row without further indexes: an upsert
	// looks for the row first.
	sqlPutCounter = `INSERT OR REPLACE INTO counters (workspace, lim, epoch, subject, win, held, at, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

	// One row says what the tables have in them.
	sqlHolding      = `SELECT through, journal, open FROM folded`
	sqlSetThrough   = `UPDATE folded SET through = ?`
	sqlOpenJournal  = `UPDATE folded SET journal = ?, open = 1`
	sqlCloseJournal = `UPDATE folded SET open = 0`

	// Of stores from before the journal had files.
	sqlJournal     = `SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlDropJournal = `DELETE FROM journal WHERE seq <= ?`

	sqlAddReservation    = `INSERT INTO reservations (seq, workspace, id, expires_at, body) VALUES (?, ?, ?, ?, ?)`
	sqlSetReservation    = `UPDATE reservations SET expires_at = ?2, body = ?3 WHERE seq = ?1`
	sqlDeleteReservation = `DELETE FROM reservations WHERE seq = ?`

	// What nothing is found by lies in the body: each value of a row that is bound
	// costs as much as a page that is looked for.
	sqlAddEvent = `INSERT INTO events (workspace, id, attempt, kind, admitted_at, body) VALUES (?, ?, ?, ?, ?, ?)`
	sqlEnding   = `SELECT kind, count(*) FROM events WHERE workspace = ? AND id = ? GROUP BY kind`

	// The call of an ended request replaces a refusal record of its first
	// sending, whose answer was lost.
	sqlAddCall = `INSERT OR REPLACE INTO calls (workspace, id, key, outcome, code, ended_at, client_id, count, body)
VALUES (?, ?, ?, ?, '', ?, ?, 1, ?)`
	sqlAddRefusal = `INSERT INTO calls (workspace, id, key, outcome, code, ended_at, client_id, count, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, id) DO UPDATE SET count = count + excluded.count WHERE outcome = 'refused'`

	// Sums saturate: SQLite's own addition would turn into a float.
	sqlAddQuarter = `INSERT INTO key_quarters (workspace, key, quarter, spend, tokens, requests) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, key, quarter) DO UPDATE SET
spend = CASE WHEN excluded.spend > 0 AND spend > 9223372036854775807 - excluded.spend THEN 9223372036854775807
 WHEN excluded.spend < 0 AND spend < -9223372036854775807 - excluded.spend THEN -9223372036854775807
 ELSE spend + excluded.spend END,
tokens = CASE WHEN excluded.tokens > 0 AND tokens > 9223372036854775807 - excluded.tokens THEN 9223372036854775807
 WHEN excluded.tokens < 0 AND tokens < -9223372036854775807 - excluded.tokens THEN -9223372036854775807
 ELSE tokens + excluded.tokens END,
requests = requests + excluded.requests`
	sqlAddNotice   = `INSERT INTO outbox (workspace, kind, at, body) VALUES (?, ?, ?, ?)`
	sqlNotices     = `SELECT body FROM outbox ORDER BY seq`
	sqlKeyQuarters = `SELECT quarter, spend, tokens, requests FROM key_quarters
WHERE workspace = ? AND key = ? AND quarter >= ? ORDER BY quarter`

	objectColumns = `workspace, kind, id, name, version, generation, epoch, body, source, origin, created_at, updated_at, retired_at`
	sqlObject     = `SELECT ` + objectColumns + ` FROM objects WHERE workspace = ? AND kind = ? AND id = ?`
	sqlByName     = `SELECT ` + objectColumns + ` FROM objects WHERE workspace = ? AND kind = ? AND name = ?
ORDER BY retired_at = 0 DESC, retired_at DESC, generation DESC LIMIT 1`
	sqlListObjects = `SELECT ` + objectColumns + ` FROM objects
WHERE workspace = ? AND kind = ? AND retired_at = 0 AND name > ? ORDER BY name LIMIT ?`
	sqlSinceObjects = `SELECT ` + objectColumns + ` FROM objects
WHERE workspace IN (?1, '') AND generation > ?2 AND (?2 > 0 OR retired_at = 0 AND kind <> ?3) ORDER BY kind, name, id`
	sqlGeneration  = `SELECT coalesce(max(generation), 0) FROM generations WHERE workspace IN (?, '')`
	sqlGenerations = `SELECT workspace, generation FROM generations`
	sqlPutObject   = `INSERT OR REPLACE INTO objects (` + objectColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlNameTaken   = `SELECT id FROM objects WHERE workspace = ? AND kind = ? AND name = ? AND retired_at = 0 AND id <> ?`

	sqlPutGeneration = `INSERT OR REPLACE INTO generations (workspace, generation) VALUES (?, ?)`

	sqlKeySecret     = `SELECT workspace, key_id, not_after FROM key_secrets WHERE hash = ?`
	sqlPutSecret     = `INSERT OR REPLACE INTO key_secrets (hash, workspace, key_id, not_after) VALUES (?, ?, ?, ?)`
	sqlExpireSecrets = `UPDATE key_secrets SET not_after = ?1
WHERE workspace = ?2 AND key_id = ?3 AND (not_after = 0 OR not_after > ?1)`

	sqlCredential       = `SELECT credential FROM credentials WHERE workspace = ? AND provider_id = ?`
	sqlPutCredential    = `INSERT OR REPLACE INTO credentials (workspace, provider_id, credential) VALUES (?, ?, ?)`
	sqlDeleteCredential = `DELETE FROM credentials WHERE workspace = ? AND provider_id = ?`

	sqlHasSchema = `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`
	sqlSchema    = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`

	sqlMeta    = `SELECT value FROM meta WHERE name = ?`
	sqlPutMeta = `INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)`

	sqlAddAudit = `INSERT INTO audit (workspace, at, actor, action, kind, id, name, before, after)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlListAudit = `SELECT seq, workspace, at, actor, action, kind, id, name, before, after FROM audit
WHERE workspace = ? AND seq < ? ORDER BY seq DESC LIMIT ?`

	// A batch that is stored changes a counter, or opens or closes a reservation,
	// which its call tells: no row of its own must be written for the instant.
	sqlInstant = `SELECT max((SELECT coalesce(max(at), 0) FROM counters), (SELECT coalesce(max(ended_at), 0) FROM calls
WHERE rowid = (SELECT max(rowid) FROM calls)))`
	sqlReservations = `SELECT workspace, id, expires_at, body, seq FROM reservations ORDER BY workspace, id`
	sqlHeld         = `SELECT workspace, lim, epoch, subject, win, held FROM counters WHERE held <> 0`
	sqlCounters     = `SELECT workspace, lim, epoch, subject, win, held, at, state FROM counters
ORDER BY workspace, lim, epoch, subject, win`
	sqlQuarters = `SELECT workspace, key, quarter, spend, tokens, requests FROM key_quarters ORDER BY workspace, key, quarter`
	sqlClosings = `SELECT workspace, lim, epoch, subject, win, day, credit, kind, amount FROM closings
ORDER BY workspace, lim, epoch, subject, win, day, credit`

	eventColumns  = `workspace, id, attempt, kind, admitted_at, body`
	sqlEvents     = `SELECT ` + eventColumns + ` FROM events ORDER BY workspace, id, attempt, kind`
	sqlCallEvents = `SELECT ` + eventColumns + ` FROM events WHERE workspace = ? AND id = ?`
	sqlFundEvents = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = ? AND kind >= 6 AND kind <= 8 AND id < ? ORDER BY id DESC LIMIT ?`
	// What may be dropped (RES-6). Rows are listed in the order in which they were
	// written, which is that of their instants while clocks run as they should.
	sqlCallAges   = `SELECT rowid, ended_at FROM calls WHERE rowid > ? ORDER BY rowid LIMIT ?`
	sqlDropCall   = `DELETE FROM calls WHERE rowid = ? AND ended_at < ?`
	sqlNoticeAges = `SELECT seq, at FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlDropNotice = `DELETE FROM outbox WHERE seq = ? AND at < ?`
	sqlNextShop   = `SELECT coalesce(min(workspace), '') FROM events WHERE workspace > ?`
	sqlOldEvents  = `SELECT ` + eventColumns + ` FROM events
WHERE workspace = ? AND id > ? AND id < ? AND kind < 6 ORDER BY id, attempt, kind LIMIT ?`
	sqlDropEvent = `DELETE FROM events WHERE workspace = ? AND id = ? AND attempt = ? AND kind = ?`
	sqlClosing   = `SELECT amount FROM closings
WHERE workspace = ? AND lim = ? AND epoch = ? AND subject = ? AND win = ? AND day = ? AND credit = ?`
	sqlPutClosing = `INSERT OR REPLACE INTO closings (workspace, lim, epoch, subject, win, day, credit, kind, amount)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlNextKey     = `SELECT workspace, key FROM key_quarters WHERE (workspace, key) > (?, ?) ORDER BY workspace, key LIMIT 1`
	sqlOldQuarters = `SELECT workspace, key, quarter, spend, tokens, requests FROM key_quarters
WHERE workspace = ? AND key = ? AND quarter >= ? AND quarter < ? AND quarter % 86400000000 <> 0 ORDER BY quarter LIMIT ?`
	sqlDropQuarter = `DELETE FROM key_quarters WHERE workspace = ? AND key = ? AND quarter = ?`

	callColumns    = `workspace, id, key, outcome, code, ended_at, client_id, count, body`
	sqlAllCalls    = `SELECT ` + callColumns + ` FROM calls ORDER BY workspace, id`
	sqlCall        = `SELECT ` + callColumns + ` FROM calls WHERE workspace = ? AND id = ?`
	sqlClientCalls = `SELECT ` + callColumns + ` FROM calls
WHERE workspace = ? AND client_id = ? AND client_id <> '' ORDER BY id DESC LIMIT ?`
	sqlCalls = `SELECT ` + callColumns + ` FROM calls
WHERE workspace = ?1 AND id < ?2 AND (?3 = '' OR outcome = ?3) ORDER BY id DESC LIMIT ?4`
	sqlKeyCalls = `SELECT ` + callColumns + ` FROM calls
WHERE workspace = ?1 AND id < ?2 AND (?3 = '' OR outcome = ?3) AND key = ?5 ORDER BY id DESC LIMIT ?4`
)
