// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// releasePatience bounds a build of this machine's platform, tools included.
const releasePatience = 10 * time.Minute

// released is what `make release` made for this machine.
type released struct {
	dist string
	name string // of the platform's files, up to their suffix
}

// TestWhatIsReleasedIsWhatItSays builds this machine's part of a release, as `make
// release` does for all platforms.
func TestWhatIsReleasedIsWhatItSays(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	r := &released{dist: filepath.Join(t.TempDir(), "dist")}
	typedIn(t, root, "make", "release", "PLATFORMS="+platform, "DIST="+r.dist)
	r.name = r.prefix(t)
	t.Run("checksums", r.checksums)
	t.Run("the same bytes from elsewhere", func(t *testing.T) { r.reproduces(t, platform) })
	binary := filepath.Join(t.TempDir(), "weir")
	t.Run("archive", func(t *testing.T) { r.archive(t, binary) })
	t.Run("bill of materials", func(t *testing.T) { r.materials(t, binary) })
	if runtime.GOOS == "linux" {
		t.Run("image", r.image)
	}
}

// typedIn runs a command in a folder; it must succeed.
func typedIn(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	var failed bytes.Buffer
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, failed.String())
	}
	return string(out)
}

func (r *released) prefix(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.dist, "weir_*.tar.gz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("archives: %v, %v", found, err)
	}
	return strings.TrimSuffix(filepath.Base(found[0]), ".tar.gz")
}

func (r *released) read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (r *released) checksums(t *testing.T) {
	listed := map[string]bool{}
	for line := range strings.Lines(string(r.read(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = true
		if got := sha256.Sum256(r.read(t, name)); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another checksum", name)
		}
	}
	want := map[string]bool{r.name + ".tar.gz": true, r.name + ".cdx.json": true}
	if runtime.GOOS == "linux" {
		want[r.name+".image.tar"] = true
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}

// reproduces builds again, from a copy in another folder: a clone with what is not
// committed laid over it.
func (r *released) reproduces(t *testing.T, platform string) {
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "elsewhere")
	script := `git clone --quiet --shared "$1" "$2"
git -C "$1" ls-files -z --cached --others --exclude-standard | (cd "$1" && while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar --null -T - -cf -) | tar -xf - -C "$2"
git -C "$1" ls-files -z --deleted | (cd "$2" && xargs -0 rm -f)
mkdir "$2/.tools" && ln -s "$1"/.tools/* "$2/.tools/"
cd "$2" && scripts/release.sh "$2/out" "$3"`
	typedIn(t, here, "bash", "-euo", "pipefail", "-c", script, "bash", here, there, platform)
	again, err := os.ReadFile(filepath.Join(there, "out", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if first := r.read(t, "SHA256SUMS"); !bytes.Equal(first, again) {
		t.Errorf("a second build differs:\n%s\nthan the first:\n%s", again, first)
	}
}

// unpack hands over every entry of a tar.
func unpack(t *testing.T, from io.Reader, do func(*tar.Header, []byte)) {
	t.Helper()
	for reader := tar.NewReader(from); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		do(h, text)
	}
}

func (r *released) archive(t *testing.T, binary string) {
	zip, err := gzip.NewReader(bytes.NewReader(r.read(t, r.name+".tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	unpack(t, zip, func(h *tar.Header, text []byte) {
		names = append(names, strings.TrimPrefix(h.Name, r.name+"/"))
		switch filepath.Base(h.Name) {
		case "weir":
			if err := os.WriteFile(binary, text, fs.FileMode(h.Mode)); err != nil {
				t.Fatal(err)
			}
		case "LICENSE", "README.md":
			if string(text) != readDoc(t, filepath.Base(h.Name)) {
				t.Errorf("%s is another", h.Name)
			}
		}
	})
	if want := []string{"", "LICENSE", "README.md", "weir.example.yaml", "weir"}; !slices.Equal(names, want) {
		t.Errorf("it holds %q", names)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	revision := strings.TrimSpace(typedIn(t, root, "git", "rev-parse", "HEAD"))
	if version := info.Main.Version; !strings.Contains(r.name, "_"+strings.TrimPrefix(version, "v")+"_") {
		t.Errorf("%s is of version %s", r.name, version)
	}
	var told struct{ Version, Revision string }
	if err := json.Unmarshal([]byte(typedIn(t, root, binary, "version", "--json")), &told); err != nil {
		t.Fatal(err)
	}
	if told.Version != info.Main.Version || told.Revision != revision {
		t.Errorf("it says %+v, and is %s of %s", told, info.Main.Version, revision)
	}
}

func (r *released) materials(t *testing.T, binary string) {
	var bom struct {
		BOMFormat string `json:"bomFormat"`
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(r.read(t, r.name+".cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.Fields(info.GoVersion)[0]}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
		if !strings.HasPrefix(c.Purl, "pkg:golang/") {
			t.Errorf("%s has the purl %q", c.Name, c.Purl)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules (-linked +listed):\n%s", diff)
	}
	if main := bom.Metadata.Component; bom.BOMFormat != "CycloneDX" || main.Name != info.Main.Path || main.Version != info.Main.Version {
		t.Errorf("it is a %s of %+v", bom.BOMFormat, main)
	}
	if len(info.Deps) < 10 {
		t.Errorf("only %d modules were found", len(info.Deps))
	}
}

// parts are the files of an image's tar; every blob must be what its name says.
func (r *released) parts(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	unpack(t, bytes.NewReader(r.read(t, r.name+".image.tar")), func(h *tar.Header, text []byte) {
		all[h.Name] = text
		if want, ok := strings.CutPrefix(h.Name, "blobs/sha256/"); ok && want != "" {
			if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != want {
				t.Errorf("%s is something else", h.Name)
			}
		}
	})
	return all
}

// blobOf is where a digest's content lies.
func blobOf(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

func decode[T any](t *testing.T, parts map[string][]byte, name string) (value T) {
	t.Helper()
	text, ok := parts[name]
	if !ok {
		t.Fatalf("the image has no %s", name)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// described is a blob as an index or a manifest names it.
type described struct {
	Digest string
	Size   int
}

// imageConfig is what is looked at of an image's configuration.
type imageConfig struct {
	OS, Architecture string
	Config           struct {
		User, WorkingDir, StopSignal string
		Entrypoint, Cmd, Env         []string
		ExposedPorts, Volumes        map[string]struct{}
		Labels                       map[string]string
		Healthcheck                  struct{ Test []string }
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

func (r *released) image(t *testing.T) {
	parts := r.parts(t)
	index := decode[struct{ Manifests []described }](t, parts, "index.json")
	if len(index.Manifests) != 1 || len(parts[blobOf(index.Manifests[0].Digest)]) != index.Manifests[0].Size {
		t.Fatalf("index %+v", index)
	}
	manifest := decode[struct {
		Config described
		Layers []described
	}](t, parts, blobOf(index.Manifests[0].Digest))
	docker := decode[[]struct {
		Config           string
		RepoTags, Layers []string
	}](t, parts, "manifest.json")
	if len(manifest.Layers) != 1 || len(docker) != 1 || docker[0].Config != blobOf(manifest.Config.Digest) ||
		!slices.Equal(docker[0].Layers, []string{blobOf(manifest.Layers[0].Digest)}) || len(docker[0].RepoTags) != 1 || !strings.HasPrefix(docker[0].RepoTags[0], "weir:") {
		t.Fatalf("manifests %+v and %+v", manifest, docker)
	}
	config := decode[imageConfig](t, parts, blobOf(manifest.Config.Digest))
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || config.Config.User != "65532:65532" {
		t.Errorf("it is for %s/%s and %q", config.OS, config.Architecture, config.Config.User)
	}
	if config.Config.Labels["org.opencontainers.image.revision"] != strings.TrimSpace(typedIn(t, root, "git", "rev-parse", "HEAD")) {
		t.Errorf("labels %v", config.Config.Labels)
	}
	if diff := cmp.Diff(instructions(t), asInstructions(t, &config)); diff != "" {
		t.Errorf("(-Dockerfile +image):\n%s", diff)
	}
	zip, err := gzip.NewReader(bytes.NewReader(parts[blobOf(manifest.Layers[0].Digest)]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(layer); !slices.Equal(config.RootFS.DiffIDs, []string{"sha256:" + hex.EncodeToString(sum[:])}) {
		t.Errorf("the layer is not %v", config.RootFS.DiffIDs)
	}
	runImage(t, layer, &config)
}

// instructions are those of the Dockerfile's last stage that say how a container runs.
func instructions(t *testing.T) map[string]string {
	t.Helper()
	_, last, found := strings.Cut(readDoc(t, "deploy/Dockerfile"), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile's last stage begins with something")
	}
	all := map[string]string{}
	for line := range strings.Lines(last) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "HEALTHCHECK" {
			_, value, _ = strings.Cut(value, " CMD ")
		}
		all[name] = strings.ReplaceAll(value, `", "`, `","`)
	}
	delete(all, "COPY")
	return all
}

func asInstructions(t *testing.T, c *imageConfig) map[string]string {
	t.Helper()
	list := func(words []string) string {
		text, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	names := func(set map[string]struct{}) (all []string) {
		for name := range set {
			all = append(all, name)
		}
		slices.Sort(all)
		return all
	}
	health := c.Config.Healthcheck.Test
	if len(health) == 0 || health[0] != "CMD" {
		t.Fatalf("health check %q", health)
	}
	return map[string]string{
		"USER": c.Config.User, "WORKDIR": c.Config.WorkingDir, "VOLUME": list(names(c.Config.Volumes)), "ENV": strings.Join(c.Config.Env, " "),
		"EXPOSE": strings.Join(names(c.Config.ExposedPorts), " "), "STOPSIGNAL": c.Config.StopSignal, "HEALTHCHECK": list(health[1:]),
		"ENTRYPOINT": list(c.Config.Entrypoint), "CMD": list(c.Config.Cmd),
	}
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
