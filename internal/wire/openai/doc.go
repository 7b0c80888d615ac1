// SPDX-License-Identifier: Apache-2.0

// Package openai speaks OpenAI's protocol: it turns a request into a call,
// rewrites the few members that the gateway decides, reads usage and output
// from answers and streams, and gives a fault the protocol's shape.
//
// A door is a type without state, in a file of its own. What doors share is
// scanning (scan.go), usage (usage.go), framing (event.go, stream.go) and
// faults (fault.go). It does not model the API: members that admission, routing
// and accounting do not need pass through as bytes.
package openai
