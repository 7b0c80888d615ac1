// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	imagetar "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user and group of the image, who owns /data.
const nobody = 65532

// config is how a container runs. deploy/Dockerfile says the same; a test holds
// them together.
func config(b *build) v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%d:%d", nobody, nobody),
		Entrypoint:   []string{"/weir"},
		Cmd:          []string{"serve"},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		Env:          []string{"WEIR_LISTEN=0.0.0.0:8787"},
		ExposedPorts: map[string]struct{}{"8787/tcp": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/weir", "ready"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 20 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "weir",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.revision": b.revision,
			"org.opencontainers.image.created":  b.committed.UTC().Format(time.RFC3339),
		},
	}
}

// files are all that is in the image.
func files(binary []byte) []entry {
	user := fmt.Sprintf("weir:x:%d:%[1]d:weir:/data:/sbin/nologin\n", nobody)
	group := fmt.Sprintf("weir:x:%d:\n", nobody)
	return []entry{
		{name: "data/", mode: 0o700, owner: nobody},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, text: []byte(group)},
		{name: "etc/passwd", mode: 0o644, text: []byte(user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: roots()},
		{name: "tmp/", mode: 0o1777},
		{name: "weir", mode: 0o755, text: binary},
	}
}

// roots are the certificate authorities that Mozilla trusts, as the Go project
// publishes them, but for those that it trusts with a condition.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}

func image(b *build) (v1.Image, error) {
	binary, err := os.ReadFile(b.binary)
	if err != nil {
		return nil, err
	}
	packed, err := tarball(files(binary), b.committed)
	if err != nil {
		return nil, err
	}
	layer, err := imagetar.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	}, imagetar.WithMediaType(types.OCILayer), imagetar.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: b.committed.UTC()}
	with, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: b.os, Architecture: b.arch, Created: created, Config: config(b), RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(with, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make release"}})
}

// saveImage writes an image as one file that both `docker load` and whatever reads
// an OCI layout take.
func saveImage(b *build, dist string) error {
	made, err := image(b)
	if err != nil {
		return fmt.Errorf("make the image of %s: %w", b.name(), err)
	}
	entries, err := layout(made, "weir:"+tag(b.version))
	if err != nil {
		return fmt.Errorf("lay out the image of %s: %w", b.name(), err)
	}
	packed, err := tarball(entries, b.committed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, b.name()+".image.tar"), packed, 0o644)
}

// tag is a version as a tag may be: it knows no plus.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// loaded is what `docker load` reads.
type loaded struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// layout is an image as an OCI layout, with Docker's manifest beside it.
func layout(made v1.Image, name string) ([]entry, error) {
	manifest, err := made.RawManifest()
	if err != nil {
		return nil, err
	}
	described, err := made.Manifest()
	if err != nil {
		return nil, err
	}
	text, err := made.RawConfigFile()
	if err != nil {
		return nil, err
	}
	digest, err := made.Digest()
	if err != nil {
		return nil, err
	}
	docker := loaded{Config: blob(described.Config.Digest), RepoTags: []string{name}}
	entries := []entry{
		{name: blob(digest), mode: 0o644, text: manifest},
		{name: blob(described.Config.Digest), mode: 0o644, text: text},
	}
	layers, err := made.Layers()
	if err != nil {
		return nil, err
	}
	for i, layer := range layers {
		reader, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		path := blob(described.Layers[i].Digest)
		docker.Layers = append(docker.Layers, path)
		entries = append(entries, entry{name: path, mode: 0o644, text: content})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest,
		Annotations: map[string]string{"io.containerd.image.name": "docker.io/library/" + name, "org.opencontainers.image.ref.name": name[strings.IndexByte(name, ':')+1:]},
	}}}
	for _, file := range []struct {
		name  string
		value any
	}{{"index.json", index}, {"manifest.json", []loaded{docker}}, {"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}}} {
		text, err := json.Marshal(file.value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: file.name, mode: 0o644, text: text})
	}
	return append([]entry{{name: "blobs/", mode: 0o755}, {name: "blobs/sha256/", mode: 0o755}}, entries...), nil
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
