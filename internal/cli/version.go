// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Answer in JSON."`
}

// build is what the toolchain recorded of this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.time":
			b.Time = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}

func (c *versionCmd) Run(s *session) error {
	b := thisBuild()
	if c.JSON {
		body, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			return err
		}
		return line(s.stdout, string(body))
	}
	text := "weir " + b.Version
	if len(b.Revision) >= 12 {
		text += " (" + b.Revision[:12] + ")"
	}
	return line(s.stdout, fmt.Sprintf("%s %s %s", text, b.Go, b.Platform))
}
