// SPDX-License-Identifier: Apache-2.0

// Package simulator is a simulated provider: it speaks the wire protocols of OpenAI
// (chat, responses, completions and the doors beside them), Anthropic (messages) and
// Gemini (generateContent), whole and streamed, answers the same request with the
// same bytes, misbehaves exactly as it is told to, and
// keeps a bill of the tokens it served, so that a ledger can be compared with
// it. It knows no prices and no limits.
//
// # Scripts
//
// What a request meets is a [Behaviour]. It comes from the model name, which
// survives any gateway, or from a [Script], a function that a test sets. A
// model name is
//
//	NAME [ "?" SETTING { "&" SETTING } ]
//
// with NAME of 1 to 200 bytes of [A-Za-z0-9._:/@+-]. Every NAME is served; the
// answer carries it without its settings. A setting is KEY=VALUE or a bare
// flag, each at most once, in any order; anything else is refused with 400
// invalid_model_script. Whole numbers have no sign and no leading zeros,
// durations are those of time.ParseDuration and not negative.
//
//	in=N           prompt tokens; else ceil(bytes of message text / 4)
//	out=N          output tokens of each choice; else 16 to 48, by the text
//	cached=N       of the prompt tokens, read from a cache
//	write5m=N      of the prompt tokens, written to a cache for five minutes
//	write1h=N      and for an hour; OpenAI's protocol does not tell them apart
//	toolin=N       of the prompt tokens, read by Gemini's own tools
//	audioin=N      of the prompt tokens, heard; not by Anthropic's
//	reasoning=N    of the output tokens, not visible as text
//	audioout=N     of the output tokens of a whole answer, spoken
//	imageout=N     of the output tokens of a whole answer, painted
//	searches=N     searches of the web, at most one of Gemini's
//	bytes=N        bytes of text of each choice; else 4 a visible token
//	chunk=N        visible tokens in one content event; else 4
//	latency=D      time before the headers
//	gap=D          time between two writes of a stream
//	usage=MODE     how usage is reported, see [UsageMode]
//	dialect=NAME   a server's way with chat completions, see [Dialect]
//	status=N       answer with this error status, 400 to 599
//	retry=N        its Retry-After, in seconds
//	refuse=FIELD   400 that names FIELD when the body has it: stream_options,
//	               max_tokens or max_completion_tokens
//	cut=POINT      reset the connection there
//	close=POINT    close the connection there, in mid-answer
//	hang=POINT     say nothing more until the client goes
//	error=POINT    an error event there, then the end, without [DONE]
//	end=POINT      an orderly end of the body there, without [DONE]
//	split=N        write each event in N pieces
//	join=N         write N events at once
//	tier=NAME      service_tier of the answer
//	as=NAME        model of the answer
//	crlf           lines of the stream end in CR LF
//	ping           a comment line before each event
//	pad=N          N bytes that say nothing, before the usage
//	gzip           compress when the client accepts it
//	pack           compress, whether the client accepts it or not
//	whole          answer a request for a stream with a whole answer
//	linger         stay open after the end of a stream, until the client goes
//	halt           stop work on a whole answer when the client goes
//	invalid        the whole answer, or the second content event, is broken JSON
//	echo           errors repeat the credential; without status, 401
//	ignore         go on although the client has gone
//	unbounded      pay no heed to the request's output bound
//	free           bill nothing for this request
//
// POINT is "headers" (before them), "after:N" (after N content events), "usage"
// (after the content and the finish reason, before the usage) or "done" (before
// [DONE], or before the last byte of a whole answer). At most one of cut, close,
// hang, error and end may be given. A whole answer is broken in the middle of
// its text where its stream would have been; error makes it an error object with
// status 200. A point that the answer never reaches breaks nothing.
//
// # The bill
//
// An answered request is billed its prompt and its output. One that broke off
// or lost its client is billed the prompt and the output produced so far, with
// these exceptions. Errors, and answers broken before any output, are free:
// usage=always bills an error in full, and a message that has been told its
// usage at its start owes that. Whole answers of broken JSON are billed when they
// have a text. A whole answer is produced in one piece as soon as the request is
// accepted, so a client that goes away before it is billed for it, with halt its
// prompt alone. Images and sound are billed when they are complete; broken ones,
// of which something was sent, their prompt. What is reported as usage never changes
// what is billed. Everything is booked, and the request is out of flight, before
// the last byte of its answer is written. The bill names each part that has a
// price of its own.
package simulator
