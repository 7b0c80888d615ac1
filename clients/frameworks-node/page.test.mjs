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

for (const [section, language, answers] of [["Vercel AI SDK", "js", 1], ["LangChain", "js", 1], ["curl", "sh", 3]]) {
  test(`the example for ${section} in docs/agents.md is answered`, async () => {
    const text = await printed(section, language, gateway.url.replace(/\/v1$/, ""), "the-secret-of-plain");
    assert.equal(text.match(/Lorem ipsum/g)?.length, answers, text);
  });
}
