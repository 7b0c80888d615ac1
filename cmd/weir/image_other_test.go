// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main_test

import "testing"

// runImage: an image's binary runs on Linux alone.
func runImage(*testing.T, []byte, *imageConfig) {}
