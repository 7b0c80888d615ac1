// SPDX-License-Identifier: Apache-2.0

// Package gemini is the Gemini protocol's side of the doors
// POST /v1beta/models/{model}:generateContent, :streamGenerateContent,
// :countTokens, :embedContent and :batchEmbedContents: it decodes what admission, routing and
// accounting need of a request, rewrites the few members that the gateway
// changes, reads usage out of answers and streams, and gives our faults the
// protocol's shape.
//
// It is no model of Google's API: whatever members it has no use for pass
// through untouched. Members may be spelled as protocol buffers' JSON allows:
// generationConfig or generation_config.
package gemini
