// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// keyStatements counts the statements on the table of keys' secrets, and on that of
// generations, which a database of logged() was sent.
type keyStatements struct{ secrets, generations int }

// logged is a database of which every statement is in the server's log.
func logged(t *testing.T) string {
	t.Helper()
	return database.Reused(t) + "&options=-c%20log_statement%3Dall"
}

func (w *world) keyStatements() (n keyStatements) {
	w.t.Helper()
	for _, line := range strings.Split(database.Log(w.t), "\n") {
		switch {
		case strings.Contains(line, "FROM key_secrets"):
			n.secrets++
		case strings.Contains(line, "FROM generations WHERE generation >"):
			n.generations++
		}
	}
	return n
}

// TestAStormOfMadeUpKeysReachesTheDatabaseAHundredTimesASecond: KEY-2, RES-8.
// Known keys go on; secrets that bear our mark are not looked up at all.
func TestAStormOfMadeUpKeysReachesTheDatabaseAHundredTimesASecond(t *testing.T) {
	w := newWorldOn(t, logged(t), start, replicaModel+"keys:\n  - {name: k, secret: "+replicaKey+"}\n", nil)
	other := w.replica()
	replicas := []*world{w, other}
	for _, r := range replicas {
		r.must(r.chat(replicaKey, "m"), 200, "")
	}
	storm := func(name string, secret func(i int) string) (statements keyStatements, known int) {
		t.Helper()
		before := w.keyStatements()
		for i, a := range volley(2000, 64, func(i int) answer {
			r := replicas[i%2]
			if i%40 < 2 {
				return r.chat(replicaKey, "m")
			}
			return r.chat(secret(i), "m")
		}) {
			switch {
			case i%40 < 2 && a.status == 200:
				known++
			case i%40 >= 2 && (a.status == 401 && a.code() == "invalid_api_key" || a.status == 503 && a.code() == "service_unavailable"):
			default:
				t.Fatalf("%s, request %d: %v", name, i, a)
			}
		}
		after := w.keyStatements()
		return keyStatements{after.secrets - before.secrets, after.generations - before.generations}, known
	}
	for _, c := range []struct {
		name   string
		secret func(i int) string
		most   int // look-ups of both together; the clock stands still
	}{
		{"made up", func(i int) string { return fmt.Sprintf("sk-made-up-%010d", i) }, 200},
		{"with our mark", func(i int) string { return "weir_" + strings.Repeat("0", 26) + fmt.Sprintf("%010d", i) }, 0},
		{"a second later", func(i int) string { return fmt.Sprintf("sk-made-up-again-%010d", i) }, 200},
	} {
		began := time.Now()
		got, known := storm(c.name, c.secret)
		if got.secrets > c.most || got.secrets < c.most-len(replicas) { // the known key was one of each
			t.Errorf("%s: %d secrets were looked up, want about %d at the most", c.name, got.secrets, c.most)
		}
		if known != 100 {
			t.Errorf("%s: %d of 100 requests of a known key passed", c.name, known)
		}
		// Each replica asks once a second what has changed, and here at most every 50 ms.
		if most := 2 * (3 + int(time.Since(began)/(45*time.Millisecond))); got.generations > most {
			t.Errorf("%s: the generations were asked for %d times, want at most %d", c.name, got.generations, most)
		}
		w.clock.Advance(time.Second)
	}
	w.settled("1", "10")
}

// TestAKeyWorksEverywhereAtOnceThoughItsSecretWasTriedBefore: ADM-4, KEY-2, BR-216.
// It comes from one replica's file; the others have another.
func TestAKeyWorksEverywhereAtOnceThoughItsSecretWasTriedBefore(t *testing.T) {
	const tried = "the-secret-that-was-tried-before"
	for name, parameter := range map[string]string{"notices": "", "asking": "&pooling=transaction"} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, database.Reused(t)+parameter, start, replicaModel, nil)
			others := []*world{w.replicaWith(replicaModel), w.replicaWith(replicaModel)}
			for _, r := range append(others, w) {
				for range 3 {
					r.must(r.chat(tried, "m"), 401, "invalid_api_key")
				}
			}
			w.reload(replicaModel+"keys:\n  - {name: k, secret: "+tried+"}\n", func() bool { return w.chat(tried, "m").status == 200 })
			for _, r := range others {
				r.must(r.chat(tried, "m"), 200, "")
			}
			w.settled("1", "10")
		})
	}
}
