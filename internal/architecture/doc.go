// SPDX-License-Identifier: Apache-2.0

// Package architecture holds no code but tests: they keep the import
// directions and the size and naming rules of docs/architecture.md. The table
// to change when a package is added is in layout_test.go.
package architecture
