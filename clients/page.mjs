// SPDX-License-Identifier: Apache-2.0

// The set-up pages under docs/, whose examples the suites run.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

/** The code of a section of a page in a language, with this gateway's root in the place of the page's. */
export function code(section, language, root, page = "agents.md") {
  const text = readFileSync(new URL(`../docs/${page}`, import.meta.url), "utf8").split(/^## /m).find((part) => part.startsWith(`${section}\n`));
  const blocks = [...text.matchAll(/^```(\w+)\n([^]*?)^```/gm)].filter((block) => block[1] === language);
  return blocks.map((block) => block[2].replaceAll("http://127.0.0.1:8787", root)).join("");
}

/** Runs a section's code in a language with a key: what it prints. */
export async function printed(section, language, root, secret, page) {
  const run = { js: [process.execPath, "--no-warnings", "--input-type=module", "--eval"], sh: ["bash", "-ec"] };
  const [command, ...args] = run[language];
  const options = { env: { ...process.env, WEIR_KEY: secret, OPENAI_API_KEY: secret, OPENAI_BASE_URL: `${root}/v1` }, timeout: 60_000 };
  return (await promisify(execFile)(command, [...args, code(section, language, root, page)], options)).stdout;
}
