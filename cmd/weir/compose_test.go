// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// composition is a compose file as the Compose Specification's own reader
// understands it.
type composition struct {
	Services map[string]*service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Command     []string
	Entrypoint  []string
	Environment map[string]string
	Healthcheck struct{ Test []string }
	Ports       []struct {
		Target    int
		Published string
	}
	Volumes []struct {
		Type, Source, Target string
		ReadOnly             bool `json:"read_only"`
	}
	Build struct{ Context, Dockerfile string }
}

const (
	composedPassword = "ThePasswordOfTheComposition"
	composedToken    = "an-admin-token-of-the-composition"
	composedKey      = "the-credential-of-the-composition"
	balancerFile     = "/usr/local/etc/haproxy/haproxy.cfg" // where HAProxy's image looks
)

// replicaNames are the gateways of the composition.
var replicaNames = []string{"weir-1", "weir-2", "weir-3"}

// compose reads deploy/compose.yaml as its first lines tell: with a filled .env
// beside it. variables are more of that file.
func compose(t *testing.T, variables ...string) *composition {
	t.Helper()
	typedIn(t, root, "make", "--no-print-directory", ".tools/compose")
	tool, err := filepath.Abs(filepath.Join(root, ".tools/compose"))
	if err != nil {
		t.Fatal(err)
	}
	read := new(composition)
	if err := json.Unmarshal([]byte(typedIn(t, composed(t, variables...), tool, "compose.yaml")), read); err != nil {
		t.Fatal(err)
	}
	return read
}

// composed is a copy of deploy/ with a filled .env. variables are more of that file.
func composed(t *testing.T, variables ...string) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	filled := regexp.MustCompile(`(?m)^([A-Z_]+)=$`).ReplaceAllStringFunc(readDoc(t, "deploy/.env.example"), func(line string) string {
		values := map[string]string{"POSTGRES_PASSWORD=": composedPassword, "WEIR_ADMIN_TOKEN=": composedToken, "OPENAI_API_KEY=": composedKey}
		if values[line] == "" {
			t.Errorf("deploy/.env.example asks for %s, which nothing reads", line)
		}
		return line + values[line]
	})
	if err := os.WriteFile(filepath.Join(folder, ".env"), []byte(filled+strings.Join(variables, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// mounted is the file or volume that a service has at a path.
func (s *service) mounted(path string) (kind, source string) {
	for _, v := range s.Volumes {
		if v.Target == path {
			return v.Type, v.Source
		}
	}
	return "", ""
}

// TestTheComposeFileSaysWhatItsProcessesRead: STO-1. Every path, variable and port in
// it is one that a process of its looks at.
func TestTheComposeFileSaysWhatItsProcessesRead(t *testing.T) {
	c := compose(t)
	image := instructions(t)
	var names []string
	for name := range c.Services {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := append([]string{"balancer", "postgres"}, replicaNames...); !slices.Equal(names, want) {
		t.Fatalf("services %q", names)
	}
	_, port, _ := strings.Cut(image["ENV"], "WEIR_LISTEN=0.0.0.0:")
	port = strings.TrimSpace(port)
	states := map[string]bool{}
	for _, name := range replicaNames {
		s := c.Services[name]
		kind, source := s.mounted(image["WORKDIR"])
		if kind != "volume" || c.Volumes[source] == nil || states[source] {
			t.Errorf("%s has the %s %q for its state", name, kind, source)
		}
		states[source] = true
		if kind, source = s.mounted(image["WORKDIR"] + "/weir.yaml"); kind != "bind" || filepath.Base(source) != "weir.yaml" {
			t.Errorf("%s has the %s %q for its configuration", name, kind, source)
		}
		if s.Command != nil || s.Entrypoint != nil || s.Build.Dockerfile != "deploy/Dockerfile" || s.Image != "weir" {
			t.Errorf("%s runs %q %q of %q", name, s.Entrypoint, s.Command, s.Image)
		}
		if got := strings.Join(s.Healthcheck.Test, " "); got != "CMD /weir ready" {
			t.Errorf("%s is healthy when %q says so", name, got)
		}
		for variable := range s.Environment {
			if !strings.Contains(readDoc(t, "deploy/weir.yaml"), "${"+variable+"}") && !strings.Contains(readDoc(t, "docs/configuration.md"), "| `"+variable+"` |") {
				t.Errorf("%s sets %s, which nothing reads", name, variable)
			}
		}
	}
	checkDatabase(t, c)
	checkBalancer(t, c.Services["balancer"], port)
}

// checkDatabase: the address of the store leads to the database that is made.
func checkDatabase(t *testing.T, c *composition) {
	t.Helper()
	made := c.Services["postgres"]
	address, err := url.Parse(c.Services["weir-1"].Environment["WEIR_STORE"])
	if err != nil {
		t.Fatal(err)
	}
	password, _ := address.User.Password()
	want := map[string]string{"POSTGRES_USER": address.User.Username(), "POSTGRES_PASSWORD": password, "POSTGRES_DB": strings.TrimPrefix(address.Path, "/")}
	if diff := cmp.Diff(want, made.Environment); diff != "" || address.Host != "postgres:5432" || password != composedPassword {
		t.Errorf("the store is at %s (-address +made):\n%s", address.Host, diff)
	}
	if kind, source := made.mounted("/var/lib/postgresql/data"); kind != "volume" || c.Volumes[source] == nil {
		t.Errorf("it keeps its data in the %s %q", kind, source)
	}
	test := strings.Join(made.Healthcheck.Test, " ")
	if !strings.Contains(test, "--username="+want["POSTGRES_USER"]) || !strings.Contains(test, "--dbname="+want["POSTGRES_DB"]) {
		t.Errorf("it is healthy when %q says so", test)
	}
}

// checkBalancer: the balancer's file and its variables fit together, and lead to
// the gateways' port.
func checkBalancer(t *testing.T, s *service, port string) {
	t.Helper()
	if kind, source := s.mounted(balancerFile); kind != "bind" || filepath.Base(source) != "haproxy.cfg" {
		t.Errorf("the balancer has the %s %q for its configuration", kind, source)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"\$\{([A-Z0-9_]+)\}"`).FindAllStringSubmatch(readDoc(t, "deploy/haproxy.cfg"), -1) {
		used[m[1]] = true
	}
	var addresses []string
	for name, value := range s.Environment {
		if !used[name] {
			t.Errorf("the balancer gets %s, which its file does not read", name)
		}
		delete(used, name)
		if name == "LISTEN" {
			if len(s.Ports) != 1 || value != ":8080" || s.Ports[0].Target != 8080 || s.Ports[0].Published != "8787" {
				t.Errorf("it listens on %s and publishes %+v", value, s.Ports)
			}
			continue
		}
		addresses = append(addresses, value)
	}
	if len(used) > 0 {
		t.Errorf("the balancer's file reads %v, which nothing sets", used)
	}
	slices.Sort(addresses)
	var want []string
	for _, name := range replicaNames {
		want = append(want, name+":"+port)
	}
	if !slices.Equal(addresses, want) {
		t.Errorf("it leads to %q, want %q", addresses, want)
	}
}
