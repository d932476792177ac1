// The WHIP part of `npm run matrix`: every client we know, one after another, a minute each at 720p, judged upstream.
// `[SECONDS]` shortens it.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { root } from "../build.mjs";

const SECONDS_EACH = 60;
const SIZE = "1280x720";
const TESTS = ["test/whip-clients.test.ts", "test/whip-clients-browser.test.ts"];

/**
 * Prints a table.
 * @param {readonly string[]} args
 * @returns {Promise<boolean>} whether every client's publish arrived as it should
 */
export default async function whip(args) {
  const seconds = Number(args[0] ?? SECONDS_EACH);
  const env = { ...process.env, WHIP_CLIENT_SECONDS: String(seconds), WHIP_CLIENT_SIZE: SIZE };
  const vitest = [join("node_modules", "vitest", "vitest.mjs"), "run", "--maxConcurrency", "1", ...TESTS];
  const child = spawn(process.execPath, vitest, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  const code = await new Promise((resolve) => child.on("close", resolve));
  const plain = stripVTControlCharacters(output);
  const rows = [...plain.matchAll(/^whip client (\{.*\})$/gm)].map(([, row]) => JSON.parse(row));
  console.table(Object.fromEntries(rows.map(({ name, ...figures }) => [name, figures])));
  if (code !== 0) console.error(plain);
  return code === 0;
}
