// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { chat, drain, Gateway, library, OpenAI, Recorder, table } from "./gateway.mjs";

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

/** The call of a mode, to the end of its answer. */
const calls = {
  whole: (client, parameters) => client.chat.completions.create(parameters),
  streamed: async (client, parameters) => drain(await client.chat.completions.create({ ...parameters, stream: true })),
};

async function prepare(row) {
  const client = gateway.client(row.key);
  for (let i = 0; i < (row.before?.times ?? 0); i++) await calls.whole(client, chat(row.before.model));
  if (!row.while) return () => {};
  const open = (await client.chat.completions.create(chat(row.while, { stream: true })))[Symbol.asyncIterator]();
  await open.next();
  return () => open.return();
}

describe("answers", { concurrency: true }, () => {
  test("models.list shows what the key may call (KEY-5)", async () => {
    const names = [];
    for await (const model of await gateway.client("listed").models.list()) names.push(model.id);
    assert.deepEqual(names, ["m"]);
    assert.equal((await gateway.client("listed").models.retrieve("m")).id, "m");
    const error = await errorOf(() => gateway.client("listed").models.retrieve("other"));
    assert.ok(error instanceof library.NotFoundError, `${error}`);
    assert.equal(error.code, "model_not_found");
  });

  test("a whole completion", async () => {
    const client = gateway.client("plain");
    const { data, response, request_id } = await client.chat.completions.create(chat("m")).withResponse();
    assert.equal(data.choices[0].finish_reason, "stop");
    assert.equal(data.choices[0].message.role, "assistant");
    assert.ok(data.choices[0].message.content.length > 0);
    assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens], [20, 30]);
    assert.equal(request_id, response.headers.get("x-weir-request-id"));
    assert.equal(response.headers.get("x-weir-cost-usd"), "0.00032");
    assert.equal(client.attempts.length, 1);
  });

  test("a stream shows no usage to a client that did not ask (DIS-6, BR-097)", async () => {
    const read = await calls.streamed(gateway.client("plain"), chat("m"));
    const whole = await calls.whole(gateway.client("plain"), chat("m"));
    assert.equal(read.text, whole.choices[0].message.content);
    assert.equal(read.finish, "stop");
    assert.equal(read.usage, undefined);
    for (const chunk of read.chunks) {
      assert.equal(chunk.choices.length, 1, "the chunk that only reports usage is hidden");
      assert.ok(!("usage" in chunk), "no chunk has a member for usage");
    }
  });

  test("a stream shows its usage to a client that asked (BR-100)", async () => {
    const read = await calls.streamed(gateway.client("plain"), chat("m", { stream_options: { include_usage: true } }));
    assert.equal(read.finish, "stop");
    assert.deepEqual([read.usage.prompt_tokens, read.usage.completion_tokens], [20, 30]);
    assert.equal(read.chunks.at(-1).choices.length, 0);
  });

  test("a request with tools passes untouched, and so does the call (DIS-6)", async () => {
    const more = {
      temperature: 0.25,
      seed: 7,
      metadata: { "ключ": "значение" },
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }],
      tool_choice: { type: "function", function: { name: "weather" } },
    };
    const client = gateway.client("plain");
    const whole = await calls.whole(client, chat("tools", more));
    assert.equal(whole.choices[0].finish_reason, "tool_calls");
    assert.deepEqual(JSON.parse(whole.choices[0].message.tool_calls[0].function.arguments), { city: "Zürich" });
    const sent = recorder.requests.at(-1);
    assert.equal(sent.path, "/v1/chat/completions");
    assert.equal(sent.body, client.attempts[0].body, "byte for byte");
    assert.equal(sent.headers.authorization, "Bearer credential-of-the-recorder");
    assert.ok(!JSON.stringify(sent).includes("the-secret-of-plain"), "the client's key stays here");

    const streamed = await calls.streamed(client, chat("tools", more));
    assert.equal(streamed.finish, "tool_calls");
    const pieces = streamed.chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
    assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments).join("")), { city: "Zürich" });
    const { stream_options, ...rest } = JSON.parse(recorder.requests.at(-1).body);
    assert.deepEqual(rest, JSON.parse(client.attempts[1].body));
    assert.deepEqual(stream_options, { include_usage: true });
  });
});

/** Checks an error of the table, and how it was come by (ERR-1 to ERR-4, BR-211, BR-214, BR-217). */
function holds(row, error, attempts) {
  const wanted = table.classes[row.status].node;
  assert.equal(error.constructor, library[wanted], `${error.constructor.name} instead of ${wanted}: ${error}`);
  assert.ok(error instanceof OpenAI.APIError);
  assert.equal(error.status, row.status);
  assert.equal(error.code, row.code, `${error}`);
  assert.equal(error.type, row.type);
  assert.equal(error.param ?? undefined, row.param);
  assert.equal(attempts.length, row.attempts, `${attempts.length} attempts`);
  for (const part of row.says ?? []) assert.ok(error.message.includes(part), `${part} is missing: ${error.message}`);
  for (const part of row.says_not ?? []) assert.ok(!error.message.includes(part), `${part} is shown: ${error.message}`);
  for (const [name, value] of Object.entries(row.details ?? {})) assert.equal(error.error.details[name], value, name);
  assert.equal(error.headers.get("x-weir-error-source"), row.source ?? "gateway");
  const id = error.headers.get("x-weir-request-id");
  assert.equal(error.requestID, id);
  if (!row.source) assert.ok(error.message.includes(id), `the request's id is missing: ${error.message}`);
  for (const [name, pattern] of Object.entries(row.headers ?? {})) {
    const value = error.headers.get(name);
    if (pattern === null) assert.equal(value, null, name);
    else assert.match(value ?? "", new RegExp(pattern), name);
  }
}

describe("refusals", { concurrency: true }, () => {
  for (const row of table.refusals) {
    test(row.name, async () => {
      const release = await prepare(row);
      try {
        for (const mode of row.modes ?? Object.keys(calls)) {
          const client = gateway.client(row.key, row.retries);
          const error = await errorOf(() => calls[mode](client, chat(row.model, row.body, row.text_bytes)));
          holds(row, error, client.attempts);
        }
      } finally {
        await release();
      }
    });
  }
});

describe("a broken stream raises (ERR-6)", { concurrency: true }, () => {
  for (const row of table.broken_streams) {
    test(row.name, async () => {
      const client = gateway.client("plain");
      const stream = await client.chat.completions.create(chat(row.model, { stream: true }));
      let text = "";
      const error = await errorOf(async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
      });
      assert.ok(text.length > 0, "what came before is delivered");
      assert.ok(error instanceof OpenAI.APIError, `${error.constructor.name}: ${error}`);
      assert.equal(error.code, row.code, `${error}`);
      assert.equal(client.attempts.length, 1, "a stream that has started is not repeated");
    });
  }
});

describe("a client that waits as it is told is admitted (ERR-2, BR-137)", { concurrency: true }, () => {
  for (const row of table.waits) {
    test(row.name, async () => {
      const release = await prepare(row);
      const client = gateway.client(row.key, 4);
      await calls.whole(client, chat("m"));
      await release();
      const refused = client.attempts.slice(0, -1);
      assert.ok(refused.length >= 1, "it was refused first");
      if (!row.while) assert.equal(refused.length, 1, "the first wait was long enough");
      for (const [i, attempt] of refused.entries()) {
        assert.equal(attempt.status, 429);
        const waited = client.attempts[i + 1].sentAt - attempt.endedAt;
        const told = 1000 * Number(attempt.headers.get("retry-after"));
        assert.ok(told >= 1000 && waited > told - 20, `told ${told} ms, waited ${waited} ms`);
      }
    });
  }
});
