// SPDX-License-Identifier: Apache-2.0

// The gateway under test and the recording provider, for the suites in Node.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const shared = (name) => fileURLToPath(new URL(name, import.meta.url));

/** The table of refusals that all suites share. */
export const table = JSON.parse(readFileSync(shared("refusals.json"), "utf8"));

/** A provider that keeps the requests it gets and calls a tool in its answer. */
export class Recorder {
  requests = [];

  async start() {
    this.server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString("utf8");
      this.requests.push({ path: request.url, headers: request.headers, body });
      const name = JSON.parse(body).stream ? "tool_call.sse" : "tool_call.json";
      response.setHeader("content-type", name.endsWith("sse") ? "text/event-stream" : "application/json");
      response.end(readFileSync(shared(name)));
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** What clients/weir-up serves. */
export class Gateway {
  /** Serves clients/weir.yaml with the recording provider, or another file. */
  async start(recorderURL, file) {
    this.process = spawn(shared("weir-up"), file ? [file] : [], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...(recorderURL && { RECORDER_URL: recorderURL }) },
    });
    this.ended = once(this.process, "close");
    const lines = createInterface({ input: this.process.stdout });
    const first = await Promise.race([once(lines, "line"), this.ended.then(([status]) => [undefined, status])]);
    if (first[0] === undefined) throw new Error(`weir-up ended with status ${first[1]}`);
    this.url = first[0];
  }

  /** Resolves to weir-up's exit status. */
  async stop() {
    this.process.stdin.end();
    const [status] = await this.ended;
    return status;
  }

  /**
   * A fetch for a client, and what it did: its attempts are the answers that came
   * over the wire, with what was sent and when.
   */
  static counting(over = fetch) {
    const attempts = [];
    const counting = async (url, init) => {
      const attempt = { sentAt: performance.now(), body: init?.body };
      attempts.push(attempt);
      const response = await over(url, init);
      attempt.status = response.status;
      attempt.headers = response.headers;
      attempt.endedAt = performance.now();
      return response;
    };
    return { attempts, fetch: counting };
  }
}
