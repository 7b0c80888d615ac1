// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// entry is one file of a tar, or a folder, whose name ends with a slash.
type entry struct {
	name  string
	mode  int64
	owner int // user and group
	text  []byte
}

// pages are what an archive has beside the binary, by their path from the root.
var pages = []string{"LICENSE", "README.md", "docs/weir.example.yaml"}

// archive packs a binary with its licence and a page to begin with.
func archive(b *build, dist, root string) error {
	binary, err := os.ReadFile(b.binary)
	if err != nil {
		return err
	}
	folder := b.name() + "/"
	entries := []entry{{name: folder, mode: 0o755}}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: folder + filepath.Base(page), mode: 0o644, text: text})
	}
	entries = append(entries, entry{name: folder + "weir", mode: 0o755, text: binary})
	packed, err := tarball(entries, b.committed)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // no name and no time in its header
	if err != nil {
		return err
	}
	if _, err := zip.Write(packed); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, b.name()+".tar.gz"), out.Bytes(), 0o644)
}

// tarball is a tar in which nothing tells who made it, where or when.
func tarball(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: at, Size: int64(len(e.text)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
