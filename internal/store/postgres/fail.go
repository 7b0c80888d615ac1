// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirhq/weir/internal/store"
)

// Codes of PostgreSQL's that mean something to the book.
const (
	codeUnique       = "23505"
	codeBadText      = "22P02"
	codeNoStatement  = "26000"
	codeStatementHad = "42P05"
	codeNoLock       = "55P03"
	codeDeadlock     = "40P01"
	codeNoRight      = "42501"
	codeReadOnly     = "25006"
	codeProtocol     = "08P01" // a pooler's word for a parameter that it does not pass on
)

const underPooler = "a pooler in transaction mode seems to stand before the database; say pooling=transaction in its URL"

// refusal is the database's answer that a statement failed and its transaction
// with it; nil when err may also be the loss of the connection.
func refusal(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.SeverityUnlocalized == "ERROR" || pg.SeverityUnlocalized == "" && pg.Severity == "ERROR") {
		return pg
	}
	return nil
}

// fate names what became of a transaction whose commit was sent. An ERROR comes
// before the commit and undoes it; after anything else nobody knows.
func fate(err error) error {
	if refusal(err) == nil {
		return errors.Join(store.ErrUnknownOutcome, err)
	}
	return notStarted(err)
}

// notStarted names a failure after which certainly nothing has happened.
func notStarted(err error) error {
	pg := refusal(err)
	switch {
	case pg == nil:
		return errors.Join(store.ErrUnavailable, err)
	case pg.Code == codeUnique:
		return fmt.Errorf("%s: %w: %w", pg.TableName, store.ErrConflict, err)
	case pg.Code == codeNoStatement, pg.Code == codeStatementHad:
		return fmt.Errorf("%s: %w", underPooler, errors.Join(store.ErrUnavailable, err))
	case strings.HasPrefix(pg.Code, "22"), strings.HasPrefix(pg.Code, "23"):
		return err // the operation's own fault, not the database's
	default:
		return errors.Join(store.ErrUnavailable, err)
	}
}

// wrongGuess tells that a batch found its rows otherwise than it had guessed.
func wrongGuess(err error) bool {
	pg := refusal(err)
	return pg != nil && pg.Code == codeBadText && strings.Contains(pg.Message, "weir: harmless")
}

// readOnly tells that the server takes no writes: it is a standby, or made so.
func readOnly(err error) bool {
	pg := refusal(err)
	return pg != nil && pg.Code == codeReadOnly
}

// recorded tells that a call was there already.
func recorded(err error) bool {
	pg := refusal(err)
	return pg != nil && pg.Code == codeUnique && strings.HasPrefix(pg.TableName, "calls")
}

// known names the errors of single statements that callers tell apart.
func known(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return store.ErrNotFound
	}
	for _, named := range []error{store.ErrConflict, store.ErrNotFound, store.ErrUnavailable} {
		if errors.Is(err, named) {
			return err
		}
	}
	return notStarted(err)
}

// Passing tells whether what failed may work later though nobody changes anything:
// the server is not reached, starts, stops, recovers or has no connection to spare.
// A wrong password, a database that is not there or a right that is lacking stay.
func Passing(err error) bool {
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
		return false
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) || strings.Contains(err.Error(), "server refused TLS connection") {
		return false
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return true
	}
	switch pg.Code[:min(len(pg.Code), 2)] {
	case "53", "57", "40", "55", "58": // resources, an operator, rollbacks, locks, the system
		return true
	case "08": // poolers say everything with it
		return !strings.Contains(pg.Message, "startup parameter")
	default:
		return pg.Code == codeReadOnly
	}
}
