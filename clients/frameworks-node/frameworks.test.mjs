// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, before, describe, test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";

import { Gateway, Recorder } from "../gateway.mjs";

const recorder = new Recorder();
const gateway = new Gateway();
const root = () => gateway.url.replace(/\/v1$/, "");
const secret = (key) => `the-secret-of-${key}`;

// Not each of the libraries takes a fetch of ours, but all use the global one.
const wire = globalThis.fetch;
const counters = new AsyncLocalStorage();

before(async () => {
  globalThis.fetch = (url, init) => (counters.getStore()?.fetch ?? wire)(url, init);
  await recorder.start();
  await gateway.start(recorder.url);
});

after(async () => {
  recorder.stop();
  assert.equal(await gateway.stop(), 0, "the gateway ends well and its books balance");
});

/** What a call came to, its value or its error, and the attempts that it took. */
async function outcomeOf(call) {
  const counter = Gateway.counting(wire);
  const outcome = await counters.run(counter, () => call().then((value) => ({ value }), (error) => ({ error })));
  return { ...outcome, attempts: counter.attempts };
}

/** Turns with the Vercel AI SDK: the text, and the tokens in and out. */
const vercel = {
  async whole(model) {
    const { text, usage } = await generateText({ model, prompt: "hello there" });
    return { text, tokens: [usage.inputTokens, usage.outputTokens] };
  },
  async streamed(model) {
    let failed;
    const stream = streamText({ model, prompt: "hello there", onError: ({ error }) => (failed = error) });
    let text = "";
    for await (const part of stream.textStream) text += part;
    if (failed) throw failed;
    const usage = await stream.usage;
    return { text, tokens: [usage.inputTokens, usage.outputTokens] };
  },
};

/** The same with LangChain. */
const langchain = {
  async whole(model) {
    const { text, usage_metadata: usage } = await model.invoke("hello there");
    return { text, tokens: [usage.input_tokens, usage.output_tokens] };
  },
  async streamed(model) {
    let all;
    for await (const chunk of await model.stream("hello there")) all = all ? all.concat(chunk) : chunk;
    return { text: all.text, tokens: [all.usage_metadata.input_tokens, all.usage_metadata.output_tokens] };
  },
};

const clients = [
  { name: "Vercel AI SDK, OpenAI's responses", turns: vercel, model: (apiKey) => createOpenAI({ apiKey, baseURL: gateway.url })("m") },
  { name: "Vercel AI SDK, OpenAI's chat", turns: vercel, model: (apiKey) => createOpenAI({ apiKey, baseURL: gateway.url }).chat("m") },
  { name: "Vercel AI SDK, Anthropic", turns: vercel, model: (apiKey) => createAnthropic({ apiKey, baseURL: gateway.url })("messages") },
  { name: "Vercel AI SDK, Google", turns: vercel, model: (apiKey) => createGoogle({ apiKey, baseURL: `${root()}/v1beta` })("contents") },
  { name: "LangChain, OpenAI", turns: langchain, model: (apiKey) => new ChatOpenAI({ apiKey, model: "m", configuration: { baseURL: gateway.url } }) },
  {
    name: "LangChain, Anthropic",
    turns: langchain,
    model: (apiKey) => new ChatAnthropic({ apiKey, model: "messages", anthropicApiUrl: root() }),
    streamed: [20, 31], // it adds the 1 of `message_start` to the 30 of `message_delta`
  },
  { name: "LangChain, Google", turns: langchain, model: (apiKey) => new ChatGoogleGenerativeAI({ apiKey, model: "contents", baseUrl: root() }) },
];

// How often each sends a request that no waiting helps, by the status. The Vercel
// AI SDK does not read x-should-retry.
const refusals = [
  { key: "no-funds", status: 402, says: /workspace \\?"broke\\?" has no funds left/, attempts: () => 1 },
  { key: "tiny", status: 429, says: /the tpm limit of key \\?"tiny\\?" is 5 tokens/, attempts: (turns) => (turns === vercel ? 3 : 1) },
];

describe("turns and refusals", { concurrency: true }, () => {
  for (const { name, turns, model, ...wanted } of clients) {
    describe(name, { concurrency: true }, () => {
      for (const [mode, turn] of Object.entries(turns)) {
        test(`a turn, ${mode}`, async () => {
          const { text, tokens } = await turn(model(secret("plain")));
          assert.match(text, /^Lorem ipsum/);
          assert.deepEqual(tokens, wanted[mode] ?? [20, 30]);
        });
        for (const { key, status, says, attempts: count } of refusals) {
          test(`${status} for the key ${key}, ${mode} (ERR-1, ERR-3)`, async () => {
            const { error, attempts } = await outcomeOf(() => turn(model(secret(key))));
            assert.equal((error.lastError ?? error).statusCode ?? error.status, status, `${error}`);
            assert.match(error.message, says);
            assert.deepEqual(attempts.map((attempt) => attempt.status), Array(count(turns)).fill(status));
            assert.equal(attempts[0].headers.get("x-should-retry"), "false");
          });
        }
      }
    });
  }

  for (const [name, key] of [["Vercel AI SDK, OpenAI's responses", "rpm-again"], ["LangChain, OpenAI", "rpm-soon"]]) {
    const { turns, model } = clients.find((client) => client.name === name);
    test(`${name}: waits out the Retry-After of a minute's requests (ERR-2)`, async () => {
      const again = () => outcomeOf(() => turns.whole(model(secret(key))));
      let result = await again();
      for (let i = 0; i < 100 && result.attempts.length === 1; i++) result = await again();
      assert.equal(result.error, undefined, `${result.error}`);
      const [refused, admitted, ...more] = result.attempts;
      assert.deepEqual([refused.status, admitted?.status, more.length], [429, 200, 0]);
      const told = 1000 * Number(refused.headers.get("retry-after"));
      const waited = admitted.sentAt - refused.endedAt;
      assert.ok(told >= 1000 && waited > told - 20, `told ${told} ms, waited ${waited} ms`);
    });
  }
});
