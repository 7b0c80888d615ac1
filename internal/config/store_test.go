// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/config"
)

// STO-1: every address that PostgreSQL's own tools take is taken as it is.
func TestAStoreMayBeADatabaseThatProcessesShare(t *testing.T) {
	for address, name := range map[string]string{
		"postgres://weir:p%40ss@db.example:5432/weir?sslmode=verify-full": "postgres://db.example:5432/weir",
		"postgresql://db/weir": "postgres://db/weir",
		"postgres://u:p@a:5432,b:5433/weir?target_session_attrs=read-write": "postgres://a:5432,b:5433/weir",
		"postgres:///weir?host=/run/postgresql&password=p":                  "postgres:///weir",
	} {
		f, err := config.Parse("conf/weir.yaml", []byte("store: "+address+"\n"), variables())
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got, ok := f.Process.StoreURL(); !ok || got != address {
			t.Errorf("the address is %q, %t", got, ok)
		}
		if got := f.Process.StoreName(); got != name {
			t.Errorf("%s is shown as %s, want %s", address, got, name)
		}
		if _, ok := f.Process.StorePath(); ok || !f.Process.Durable() || f.StateFolder() != "conf" {
			t.Errorf("%s: file %t, durable %t, state in %s", address, ok, f.Process.Durable(), f.StateFolder())
		}
	}
}

func TestAWrongAddressOfADatabaseIsToldWithoutItsPassword(t *testing.T) {
	for _, address := range []string{
		"postgres://weir:hidden word@db/weir", "postgres://weir:hidden#word@db/weir", "postgres://weir:hidden@word@db/weir",
		"postgres://weir:hidden%zz@db/weir", "postgres:weir:hidden@db", "Postgres://weir:hidden@db/weir",
	} {
		for _, text := range []string{"store: '" + address + "'\n", "postgres: {listen_url: '" + address + "'}\n"} {
			if _, err := config.Parse("weir.yaml", []byte(text), variables()); err == nil || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestTheStateFolderIsTheFilesUnlessNamed(t *testing.T) {
	f, err := config.Parse("conf/weir.yaml", []byte("state_dir: /var/lib/weir\n"), variables())
	if err != nil || f.StateFolder() != "/var/lib/weir" {
		t.Errorf("it is %s (%v)", f.StateFolder(), err)
	}
	f, err = config.Default(variables(config.EnvStateDir, "elsewhere"))
	if err != nil || f.StateFolder() != "elsewhere" {
		t.Errorf("it is %s (%v)", f.StateFolder(), err)
	}
	if f, err = config.Default(variables()); err != nil || f.StateFolder() != "." {
		t.Errorf("it is %s (%v)", f.StateFolder(), err)
	}
}
