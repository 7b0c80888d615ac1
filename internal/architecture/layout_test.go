// SPDX-License-Identifier: Apache-2.0

package architecture_test

// module is the path that every import of our own begins with.
const module = "github.com/weirhq/weir"

// layer is where a package family stands. A family is the first folder below
// internal/, with everything under it.
type layer int

const (
	leaf    layer = iota // the standard library only
	domain               // leaves, and the domain families listed before it
	adapter              // leaves and domain, never another adapter
	shell                // leaves, domain, and what `also` names
	root                 // everything
)

// families is the layout. The order of the domain families is their import
// order: each may import those above it.
var families = []struct {
	name  string
	layer layer
}{
	{"money", leaf},
	{"fault", leaf},
	{"clock", leaf},
	{"window", leaf},
	{"document", leaf},
	{"child", leaf},
	{"frame", leaf},

	{"tenant", domain},
	{"budget", domain},
	{"rule", domain},
	{"call", domain},
	{"price", domain},
	{"route", domain},
	{"ledger", domain},
	{"limit", domain},
	{"teller", domain},
	{"admit", domain},
	{"directory", domain},
	{"keeper", domain},

	{"gateway", adapter},
	{"wire", adapter},
	{"store", adapter},
	{"spool", adapter},
	{"admin", adapter},
	{"notify", adapter},
	{"console", adapter},
	{"observe", adapter},
	{"simulator", adapter},
	{"sim", adapter},

	{"config", shell},
	{"cli", shell},
	{"app", root},
	{"architecture", shell},
}

// also names families that one may import beyond its layer, each with a reason.
var also = map[string][]string{
	// The command line hands a checked configuration to the composition root
	// and runs what comes out.
	"cli": {"app", "config", "admin", "simulator"},
	// Snapshots are made of the store's objects, administration writes them:
	// the roles in store are their words; the drivers stay app's.
	"directory": {"store"},
	"keeper":    {"store"},
	"admin":     {"store"},
}

// common names what siblings of one family may import: what in-process books
// share, the drivers that the contract's own tests run on, and a server for a while.
var common = []string{"internal/store/shelf", "internal/store/memory", "internal/store/storetest", "internal/store/postgres/local"}

// homes names the only families that may import a module from elsewhere, so
// that a framework or driver is exchanged in one place.
var homes = map[string][]string{
	"github.com/alecthomas/kong":      {"cli"},
	"github.com/danielgtaylor/huma":   {"admin"},
	"github.com/goccy/go-yaml":        {"config", "wire"},
	"github.com/jackc/pgx":            {"store"},
	"github.com/pressly/goose":        {"store"},
	"modernc.org/sqlite":              {"store"},
	"github.com/maypok86/otter":       {"directory", "store", "gateway"},
	"github.com/openai/openai-go":     {},
	"golang.org/x/oauth2":             {"gateway"},
	"github.com/google/go-cmp":        {},
	"github.com/rogpeppe/go-internal": {},
	"go.uber.org/goleak":              {},
}

// pure lists the families whose decisions must be the same wherever and
// whenever they run: no locking, no cancelling, no clock, not even a clock
// that a package of ours hands through.
var pure = []string{"ledger", "limit", "price"}
