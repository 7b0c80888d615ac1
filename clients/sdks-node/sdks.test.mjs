// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

import { Gateway, Recorder } from "../gateway.mjs";

const recorder = new Recorder();
const gateway = new Gateway();

before(async () => {
  await recorder.start();
  await gateway.start(recorder.url);
});

after(async () => {
  recorder.stop();
  assert.equal(await gateway.stop(), 0, "the gateway ends well and its books balance");
});

/** The error that a call must end with. */
async function errorOf(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  assert.fail("it did not raise");
}

const secret = (key) => `the-secret-of-${key}`;
const root = () => gateway.url.replace(/\/v1$/, "");

describe("Anthropic's client", () => {
  const client = (key) => {
    const { attempts, fetch } = Gateway.counting();
    return { attempts, client: new Anthropic({ apiKey: secret(key), baseURL: root(), fetch }) };
  };
  const turn = { model: "messages", max_tokens: 100, messages: [{ role: "user", content: "hello there" }] };

  test("a whole message", async () => {
    const { client: c } = client("plain");
    const message = await c.messages.create(turn);
    assert.equal(message.type, "message");
    assert.deepEqual([message.usage.input_tokens, message.usage.output_tokens], [20, 30]);
    assert.ok(message.content[0].text.length > 0);
    assert.ok(message._request_id, "the answer has request-id (ERR-4)");
  });

  test("a streamed message", async () => {
    const { client: c } = client("plain");
    const message = await c.messages.stream(turn).finalMessage();
    assert.equal(message.stop_reason, "end_turn");
    assert.equal(message.usage.output_tokens, 30);
    assert.ok(message.content[0].text.length > 0);
  });

  test("counting tokens costs nothing (SPEC 9)", async () => {
    const { client: c } = client("plain");
    const { max_tokens: _, ...counted } = turn;
    assert.equal((await c.messages.countTokens(counted)).input_tokens, 20);
  });

  test("its models", async () => {
    const { client: c } = client("listed");
    const names = [];
    for await (const model of c.models.list()) names.push(model.id);
    assert.deepEqual(names, ["m"]);
  });

  test("a spent cap is one attempt and says so, whole and streamed (ERR-1, ERR-3)", async () => {
    const { client: c } = client("spent-messages");
    await c.messages.create(turn);
    for (const call of [(c) => c.messages.create(turn), (c) => c.messages.stream(turn).finalMessage()]) {
      const { client: again, attempts } = client("spent-messages");
      const error = await errorOf(() => call(again));
      assert.equal(error.status, 402, `${error}`);
      assert.equal(error.error.error.code, "day_limit_reached");
      assert.equal(error.error.error.type, "billing_error");
      assert.match(error.message, /day cap/);
      assert.equal(attempts.length, 1);
    }
  });

  test("an unknown key is its own error", async () => {
    const { client: c, attempts } = client("nobody");
    const error = await errorOf(() => c.messages.create(turn));
    assert.ok(error instanceof Anthropic.AuthenticationError, `${error}`);
    assert.equal(attempts.length, 1);
  });
});

describe("Google's client", () => {
  const client = (key) => new GoogleGenAI({ apiKey: secret(key), httpOptions: { baseUrl: root() } });
  const turn = { model: "contents", contents: "hello there" };

  test("a whole answer", async () => {
    const answer = await client("plain").models.generateContent(turn);
    assert.ok(answer.text.length > 0);
    assert.deepEqual([answer.usageMetadata.promptTokenCount, answer.usageMetadata.candidatesTokenCount], [20, 30]);
  });

  test("a streamed answer", async () => {
    let text = "";
    let last;
    for await (const chunk of await client("plain").models.generateContentStream(turn)) {
      text += chunk.text ?? "";
      last = chunk;
    }
    assert.ok(text.length > 0);
    assert.equal(last.candidates[0].finishReason, "STOP");
    assert.equal(last.usageMetadata.candidatesTokenCount, 30);
  });

  test("counting tokens costs nothing (SPEC 9)", async () => {
    assert.equal((await client("plain").models.countTokens(turn)).totalTokens, 20);
  });

  test("a spent cap is an error that names it, whole and streamed (ERR-1)", async () => {
    const c = client("spent-contents");
    await c.models.generateContent(turn);
    for (const call of [
      () => c.models.generateContent(turn),
      async () => {
        for await (const _ of await c.models.generateContentStream(turn));
      },
    ]) {
      const error = await errorOf(call);
      assert.ok(error instanceof ApiError, `${error}`);
      assert.equal(error.status, 402);
      assert.match(error.message, /day_limit_reached/);
    }
  });

  test("a model of another protocol is not served there", async () => {
    const error = await errorOf(() => client("plain").models.generateContent({ ...turn, model: "m" }));
    assert.equal(error.status, 404, `${error}`);
  });
});

describe("OpenAI's responses", () => {
  const client = (key) => {
    const { attempts, fetch } = Gateway.counting();
    return { attempts, client: new OpenAI({ apiKey: secret(key), baseURL: gateway.url, fetch }) };
  };
  const turn = { model: "m", input: "hello there" };

  test("a whole response", async () => {
    const { client: c } = client("plain");
    const response = await c.responses.create(turn);
    assert.equal(response.status, "completed");
    assert.ok(response.output_text.length > 0);
    assert.deepEqual([response.usage.input_tokens, response.usage.output_tokens], [20, 30]);
  });

  test("a streamed response", async () => {
    const { client: c } = client("plain");
    const response = await c.responses.stream(turn).finalResponse();
    assert.equal(response.status, "completed");
    assert.ok(response.output_text.length > 0);
    assert.equal(response.usage.output_tokens, 30);
  });

  test("a stream that its provider breaks raises (ERR-6)", async () => {
    const { client: c } = client("plain");
    const error = await errorOf(async () => {
      for await (const event of await c.responses.create({ ...turn, model: "cut", stream: true })) {
        if (event.type === "response.failed") throw new Error(event.response.error.code);
      }
    });
    assert.match(`${error}`, /upstream_unreachable|provider/);
  });

  test("embeddings keep the form in which they were asked for", async () => {
    const { client: c } = client("plain");
    const vectors = await c.embeddings.create({ model: "m", input: "hello", encoding_format: "float" });
    assert.deepEqual(vectors.data[0].embedding, [0.25, -0.5, 0.75]);
    assert.equal(vectors.usage.prompt_tokens, 20);
  });

  test("a spent cap is one attempt, whole and streamed (ERR-3)", async () => {
    const { client: c } = client("spent-responses");
    await c.responses.create(turn);
    for (const stream of [false, true]) {
      const { client: again, attempts } = client("spent-responses");
      const error = await errorOf(() => again.responses.create({ ...turn, stream }));
      assert.equal(error.status, 402, `${error}`);
      assert.equal(error.code, "day_limit_reached");
      assert.equal(attempts.length, 1);
    }
  });
});
