// SPDX-License-Identifier: Apache-2.0

// Clients of the gateway under test that count.

import { Gateway as Served } from "../gateway.mjs";

export { Recorder, table } from "../gateway.mjs";

export const { default: OpenAI, ...library } = await import(process.env.OPENAI_PACKAGE ?? "openai");

/** What clients/weir-up serves. */
export class Gateway extends Served {
  /** A client as a user has it, with its attempts. */
  client(key, maxRetries = 2) {
    const { attempts, fetch } = Served.counting();
    const client = new OpenAI({ apiKey: `the-secret-of-${key}`, baseURL: this.url, maxRetries, fetch });
    client.attempts = attempts;
    return client;
  }
}

/** A chat completion's parameters. */
export function chat(model, more = {}, textBytes = 0) {
  return { model, messages: [{ role: "user", content: textBytes ? "x".repeat(textBytes) : "hello there" }], ...more };
}

/** Reads a stream to its end. */
export async function drain(stream) {
  const read = { chunks: [], text: "", usage: undefined, finish: undefined };
  for await (const chunk of stream) {
    read.chunks.push(chunk);
    read.text += chunk.choices[0]?.delta?.content ?? "";
    read.finish = chunk.choices[0]?.finish_reason ?? read.finish;
    read.usage = chunk.usage ?? read.usage;
  }
  return read;
}
