// SPDX-License-Identifier: Apache-2.0

package app

import (
	"time"

	"github.com/weirhq/weir/internal/gateway"
)

// WithChat lets a test put something between the gateway and the protocol.
func (o *Options) WithChat(wrap func(gateway.Protocol) gateway.Protocol) { o.hooks.chat = wrap }

// WithWriteTimeout shortens the time that a client has for a part of an answer.
func (o *Options) WithWriteTimeout(d time.Duration) { o.hooks.writeTimeout = d }

// Eagerly makes the background work look often.
func (o *Options) Eagerly() { o.hooks.every = 2 * time.Millisecond }

// Routes lists the routes of the running program's data plane.
func (s *Server) Routes() []gateway.Route { return s.gateway.Routes() }
