// SPDX-License-Identifier: Apache-2.0

// Command release packs what was built: release BUILT DIST ROOT makes an archive of
// BUILT/OS_ARCH/weir for each platform, a container image for those of Linux, and
// DIST/SHA256SUMS of all that is in DIST. The same binaries give the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: release BUILT DIST ROOT")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// build is one binary and what its toolchain stamped into it.
type build struct {
	binary            string
	os, arch          string
	version, revision string
	committed         time.Time
}

// name begins the names of everything that is made of the build.
func (b *build) name() string { return "weir_" + b.version + "_" + b.os + "_" + b.arch }

func pack(built, dist, root string) error {
	binaries, err := filepath.Glob(filepath.Join(built, "*", "weir"))
	if err != nil || len(binaries) == 0 {
		return fmt.Errorf("find binaries in %s: %w", built, errors.Join(err, os.ErrNotExist))
	}
	for _, binary := range binaries {
		b, err := inspect(binary)
		if err != nil {
			return err
		}
		if err := archive(b, dist, root); err != nil {
			return err
		}
		if b.os != "linux" {
			continue
		}
		if err := saveImage(b, dist); err != nil {
			return err
		}
	}
	return sum(dist)
}

// inspect reads the stamp. A binary without one is refused: nobody could say what
// it was built from.
func inspect(binary string) (*build, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the stamp of %s: %w", binary, err)
	}
	b := &build{binary: binary, version: strings.TrimPrefix(info.Main.Version, "v")}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			b.os = s.Value
		case "GOARCH":
			b.arch = s.Value
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			if b.committed, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return nil, fmt.Errorf("read the stamp of %s: %w", binary, err)
			}
		}
	}
	if b.os == "" || b.arch == "" || b.revision == "" || b.committed.IsZero() || b.version == "" || b.version == "(devel)" {
		return nil, fmt.Errorf("%s has no version of git stamped into it", binary)
	}
	return b, nil
}

// sum writes the checksums of everything in a folder, in the order of their names.
func sum(dist string) error {
	const name = "SHA256SUMS"
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.Name() == name {
			continue
		}
		f, err := os.Open(filepath.Join(dist, entry.Name()))
		if err != nil {
			return err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", hash.Sum(nil), entry.Name())
	}
	return os.WriteFile(filepath.Join(dist, name), []byte(lines.String()), 0o644)
}
