// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Gateway } from "../gateway.mjs";
import { printed } from "../page.mjs";

const gateway = new Gateway();

before(() => gateway.start(undefined, fileURLToPath(new URL("../agents/weir.yaml", import.meta.url))));

after(async () => {
  assert.equal(await gateway.stop(), 0, "the gateway ends well and its books balance");
});

for (const [secret, wanted] of [
  ["the-secret-of-plain", /^Lorem ipsum/],
  ["the-secret-of-nobody", /^401 invalid_api_key req_/],
]) {
  test(`the example for Node in docs/clients.md prints ${wanted}`, async () => {
    assert.match(await printed("Node", "js", gateway.url.replace(/\/v1$/, ""), secret, "clients.md"), wanted);
  });
}
