// SPDX-License-Identifier: Apache-2.0

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { code } from "../page.mjs";

const installed = join(process.env.AGENTS ?? import.meta.dirname, "node_modules");

/** How long a program may take before it is stopped, and its test fails. */
const boundMillis = 300_000;

/**
 * The programs. Each is set up as its section of docs/agents.md says: the
 * section's exports are its environment, its block of the language `language` is
 * the file `file` in its home. `env` keeps it from what is no turn. `attempts` is
 * how often it sends each of its requests where they are refused for good, by the
 * status, the fewest first. The slowest program is first.
 */
export const programs = [
  {
    name: "opencode",
    command: [join("opencode-linux-x64", "bin", "opencode")],
    args: ["run", "say hello"],
    file: ".config/opencode/opencode.json",
    language: "json",
    env: { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_PURE: "1" },
    model: "gpt-5",
    door: "/v1/chat/completions",
    requests: 2, // the turn, and a title for it
    attempts: { 402: [1, 1], 429: [3, 6] },
    misreads: /429|50[0234]|524/, // for a status that may pass, wherever it is in a refusal
  },
  {
    name: "Claude Code",
    command: [process.execPath, "@anthropic-ai/claude-code/cli-wrapper.cjs"],
    args: ["-p", "say hello"],
    env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" },
    model: "claude-sonnet-5",
    door: "/v1/messages",
    requests: 1,
    attempts: { 402: [1], 429: [1] },
  },
  {
    name: "Codex",
    command: [process.execPath, "@openai/codex/bin/codex.js"],
    args: ["exec", "--skip-git-repo-check", "say hello"],
    file: ".codex/config.toml",
    language: "toml",
    model: "gpt-5",
    door: "/v1/responses",
    requests: 1,
    attempts: { 402: [6], 429: [1] },
  },
  {
    name: "gemini-cli",
    command: [process.execPath, "@google/gemini-cli/bundle/gemini.js"],
    args: ["--skip-trust", "-m", "gemini-2.5-flash", "-p", "say hello"],
    file: ".gemini/settings.json",
    language: "json",
    env: { GEMINI_CLI_NO_RELAUNCH: "true" },
    model: "gemini-2.5-flash",
    door: "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    requests: 1,
    attempts: { 402: [1], 429: [1] },
  },
];

/** Where a part of a program's command lies; Node and absolute paths stay. */
const located = (part) => (part.startsWith("/") ? part : join(installed, part));

/** Whether this platform's package is installed. */
export const available = (program) => program.command.map(located).every(existsSync);

/** What docs/agents.md says of a program, with this address and this key. */
function setUp(program, url, secret) {
  const env = { WEIR_KEY: secret };
  for (const [, name, value] of code(program.name, "sh", url).matchAll(/^export (\w+)=(\S+)$/gm)) env[name] = value.replace("$WEIR_KEY", secret);
  return { env, file: program.language && code(program.name, program.language, url) };
}

/** Runs a program in a home of its own, with no network but the tap's. */
export async function run(program, tap, secret) {
  const home = mkdtempSync(join(tmpdir(), "weir-agent-"));
  try {
    const { env, file } = setUp(program, tap.url, secret);
    if (program.file) {
      mkdirSync(dirname(join(home, program.file)), { recursive: true });
      writeFileSync(join(home, program.file), file);
    }
    for (const folder of ["work", "tmp"]) mkdirSync(join(home, folder));
    const [command, ...first] = program.command.map(located);
    return await ended(program, spawn(command, [...first, ...program.args], {
      cwd: join(home, "work"),
      detached: true, // a process group, so that what it starts ends with it
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...alone(home, tap), ...program.env, ...env },
    }));
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The environment of a program that is to find nothing of this machine's. */
function alone(home, tap) {
  const proxy = { HTTP_PROXY: tap.url, HTTPS_PROXY: tap.url, NO_PROXY: "127.0.0.1" };
  for (const name of Object.keys(proxy)) proxy[name.toLowerCase()] = proxy[name];
  return { PATH: process.env.PATH, HOME: home, TMPDIR: join(home, "tmp"), TERM: "dumb", NO_COLOR: "1", ...proxy };
}

/** Waits until a program has ended: its status and all that it has printed. */
async function ended(program, child) {
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (printed += text));
  const stop = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
  };
  let late = false;
  const bound = setTimeout(() => {
    late = true;
    stop();
  }, boundMillis);
  try {
    const status = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    if (late) throw new Error(`${program.name} has not ended within ${boundMillis} ms; it printed:\n${printed}`);
    return { status, printed };
  } finally {
    clearTimeout(bound);
    stop();
  }
}
