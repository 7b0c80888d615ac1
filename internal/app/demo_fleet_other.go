// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package app

import (
	"context"
	"errors"
)

// demoFleet is several gateways, which only a Unix can kill as a crash does.
type demoFleet struct{ store, described string }

func newDemoFleet(context.Context, DemoOptions, string, string) (*demoFleet, error) {
	return nil, errors.New("a demonstration of several gateways runs on Linux and macOS")
}

func (*demoFleet) start(context.Context) ([]string, error)             { return nil, nil }
func (*demoFleet) launch(context.Context, int, string) (string, error) { return "", nil }
func (*demoFleet) pid(int) int                                         { return 0 }
func (*demoFleet) kill(int) error                                      { return nil }
func (*demoFleet) stop(context.Context) error                          { return nil }
