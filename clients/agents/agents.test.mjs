// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { Gateway } from "../gateway.mjs";
import { available, programs, run } from "./program.mjs";
import { Tap } from "./tap.mjs";

const gateway = new Gateway();
const whole = process.env.CLIENTS === "whole";

before(() => gateway.start(undefined, fileURLToPath(new URL("weir.yaml", import.meta.url))));

after(async () => {
  assert.equal(await gateway.stop(), 0, "the gateway ends well and its books balance");
});

/** Asks the gateway's admin API, of a workspace. */
async function admin(workspace, path, body) {
  const response = await fetch(new URL(path, gateway.url), {
    method: body ? "POST" : "GET",
    headers: { authorization: "Bearer the-token-of-the-admin", "content-type": "application/json", "x-weir-workspace": workspace },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}

/** Uses a key until it is refused. */
async function exhaust(secret) {
  const body = JSON.stringify({ model: "gpt-5", max_tokens: 50, messages: [{ role: "user", content: "hello" }] });
  for (let status = 200; status === 200; ) {
    const response = await fetch(`${gateway.url}/chat/completions`, { method: "POST", headers: { authorization: `Bearer ${secret}` }, body });
    await response.arrayBuffer();
    status = response.status;
  }
}

/**
 * One turn of a program with a key of its own, which its first request finds
 * exhausted if that is asked for: what it printed, the attempts that came through
 * the tap, and as many records of the gateway.
 */
async function turn(program, { workspace = "default", exhausted = false, ...fields }) {
  const name = `${program.name} ${Object.keys(fields)} ${workspace}`;
  const { secret } = await admin(workspace, "/api/v1/keys", { name, ...fields });
  const records = async () => (await admin(workspace, `/api/v1/requests?limit=1000&key=${encodeURIComponent(name)}`)).requests;
  let earlier = 0;
  const tap = new Tap(gateway.url, async () => {
    if (exhausted) await exhaust(secret);
    earlier = (await records()).length;
  });
  await tap.start();
  try {
    const { status, printed } = await run(program, tap, secret);
    const attempts = tap.attempts.filter(({ path }) => path.split("?")[0] === program.door);
    assert.deepEqual(tap.attempts.filter((attempt) => !attempts.includes(attempt)).map(({ method, path }) => [method, path]), [], "it asks for its door alone");
    let own = [];
    for (let i = 0; i < 100 && own.length < attempts.length; i++) {
      if (i) await pause(50); // refusals are written down a moment after they are answered
      own = (await records()).slice(0, -earlier || undefined);
    }
    assert.equal(own.length, attempts.length, `as many records as attempts\n${printed}`);
    return { name, status, printed, attempts, records: own };
  } finally {
    tap.stop();
  }
}

/** The attempts of each request, in the order in which they came. */
function repeated(attempts) {
  const groups = new Map(); // a repetition is as long as the first, though not always the same
  for (const attempt of attempts) groups.set(attempt.bytes, [...(groups.get(attempt.bytes) ?? []), attempt]);
  return [...groups.values()];
}

function answered({ status, printed, records }, program) {
  assert.equal(status, 0, printed);
  assert.match(printed, /Lorem ipsum dolor sit amet/);
  const settled = records.filter(({ outcome }) => outcome === "settled");
  assert.equal(settled.length, program.requests);
  for (const record of settled) assert.deepEqual([record.model, record.spend, record.tokens], [program.model, "0.00032", 50]);
}

/** Checks a turn that was refused for good with a status, a code and a message. */
function refused({ name, status, printed, attempts, records }, program, wanted) {
  assert.notEqual(status, 0, printed);
  for (const record of records) assert.deepEqual([record.outcome, record.code, record.spend], ["refused", wanted.code, "0"]);
  for (const { status, headers } of attempts) {
    assert.deepEqual([status, headers["x-should-retry"], headers["retry-after"]], [wanted.status, "false", undefined]);
  }
  if (wanted.says) assert.ok(printed.replaceAll('\\"', '"').includes(wanted.says(name)), printed);
  if (wanted.status === 402 && program.misreads && attempts.some(({ refusal }) => program.misreads.test(refusal))) return;
  const counts = repeated(attempts).map((group) => group.length);
  assert.deepEqual(counts.sort((a, b) => a - b), program.attempts[wanted.status], printed);
}

/** Checks that a turn was refused first, and repeated when it had been told to. */
function waited({ attempts, records }) {
  assert.ok(records.some(({ code }) => code === "api_key_rpm_exceeded"), "it was refused first");
  for (const group of repeated(attempts)) {
    assert.equal(group.at(-1).status, 200);
    for (const [i, attempt] of group.slice(0, -1).entries()) {
      assert.equal(attempt.status, 429);
      const told = 1000 * Number(attempt.headers["retry-after"]);
      const waited = group[i + 1].sentAt - attempt.endedAt;
      assert.ok(told >= 1000 && waited > told - 20, `told ${told} ms, waited ${waited} ms`);
    }
  }
}

const here = programs.filter(available);
const missing = programs.filter((program) => !here.includes(program)).map(({ name }) => name);
if (missing.length) {
  console.error(`agents: passed over, without a package for ${process.platform} ${process.arch}: ${missing.join(", ")}`);
  assert.notEqual(process.env.CI, "true");
}

describe("a program", { concurrency: 2 }, () => {
  for (const program of here) describe(program.name, () => tests(program));
});

function tests(program) {
  test("a turn is answered and charged", async () => {
    answered(await turn(program, {}), program);
  });
  if (!whole) return;

  test("a spent cap is said, in as many attempts as are known (ERR-1, ERR-3)", async () => {
    const spent = await turn(program, { caps: { day: "0.0001" }, exhausted: true });
    refused(spent, program, { status: 402, code: "day_limit_reached", says: (name) => `the day cap of key "${name}" is 0.0001 USD` });
  });

  test("a budget that refuses with 402 is said (ERR-7)", async () => {
    const over = await turn(program, { plan: "tiny", workspace: "agents" });
    refused(over, program, { status: 402, code: "budget_exceeded", says: () => `the budget "tiny" of` });
  });

  test("a budget that refuses with 429 is one attempt, or as many as are known (ERR-3)", async () => {
    refused(await turn(program, { plan: "tiny" }), program, { status: 429, code: "budget_exceeded" });
  });

  test("a minute's requests that are used up are waited for, then it is answered (ERR-2)", async () => {
    const result = await turn(program, { limits: { rpm: 12 }, exhausted: true });
    waited(result);
    answered(result, program);
  });
}
