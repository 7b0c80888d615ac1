// SPDX-License-Identifier: Apache-2.0

import { once } from "node:events";
import { createServer, request as open } from "node:http";

/**
 * What stands between a program and the gateway: it passes everything on as it
 * comes and keeps the attempts. As the program's proxy it refuses the rest of
 * the network and keeps the hosts that were asked for.
 */
export class Tap {
  attempts = [];
  outside = [];

  /** `first` is awaited before the first attempt is passed on. */
  constructor(gatewayURL, first = async () => {}) {
    this.gateway = new URL(gatewayURL);
    this.first = first;
  }

  async start() {
    this.server = createServer((request, response) => this.#pass(request, response));
    this.server.on("connect", (request, socket) => {
      this.outside.push(request.url);
      socket.on("error", () => {});
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    });
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #pass(request, response) {
    if (!request.url.startsWith("/")) {
      this.outside.push(request.url);
      return response.writeHead(403).end();
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    this.opened ??= this.first();
    await this.opened;
    const attempt = { method: request.method, path: request.url, bytes: body.length, refusal: "", sentAt: performance.now() };
    this.attempts.push(attempt);
    const { hostname, port } = this.gateway;
    const { method, url: path, headers } = request;
    const passed = open({ hostname, port, method, path, headers }, (answer) => {
      attempt.status = answer.statusCode;
      attempt.headers = answer.headers;
      attempt.endedAt = performance.now();
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
      if (answer.statusCode !== 200) answer.on("data", (chunk) => (attempt.refusal += chunk));
      answer.on("error", () => response.destroy());
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    passed.end(body);
  }
}
