// SPDX-License-Identifier: Apache-2.0

// Package anthropic is the Anthropic protocol's side of the doors
// POST /v1/messages and POST /v1/messages/count_tokens: it decodes what
// admission, routing and accounting need of a request, rewrites the few members
// that the gateway changes, reads usage out of answers and streams, and gives
// our faults the protocol's shape.
//
// It is no model of Anthropic's API: versions, beta flags and whatever members
// it has no use for pass through untouched.
package anthropic
