// The WHIP part of `npm run matrix`: every known client, one after another, for a minute each at 720p, checked at the
// upstream; then a publisher through 24 bad networks, and Chromium through 12, with its stream decoded. `[SECONDS]`
// shortens the clients' minutes.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { root } from "../../scripts/build.mjs";

const SECONDS_EACH = 60;
const SIZE = "1280x720";
const CLIENTS = ["test/whip/whip-clients.test.ts", "test/whip/alone/whole/whip-clients-browser.test.ts"];
const NETWORKS = ["test/whip/whip-impairment.test.ts"];
const DECODED = ["test/whip/alone/whip-publish.test.ts", "-t", "a network of"];
/** Publishers with generated video need little; more of them in parallel would be late on a small machine. */
const NETWORKS_AT_ONCE = 4;

/**
 * Prints three tables, and what failed.
 * @returns {Promise<boolean>} whether everything arrived as it should
 */
export async function matrix(args = []) {
  const seconds = Number(args[0] ?? SECONDS_EACH);
  const environment = { WHIP_CLIENT_SECONDS: String(seconds), WHIP_CLIENT_SIZE: SIZE };
  const clients = await tests(CLIENTS, environment, 1);
  const rows = clients.figures("whip client").map(({ name, ...figures }) => [name, figures]);
  console.table(Object.fromEntries(rows));
  const networks = await tests(NETWORKS, { WHIP_IMPAIRMENT: "all" }, NETWORKS_AT_ONCE);
  console.table(networks.figures("whip impairment"));
  const decoded = await tests(DECODED, { WHIP_IMPAIRMENT: "all" }, 1);
  console.table(decoded.figures("whip decoded"));
  return clients.isGreen && networks.isGreen && decoded.isGreen;
}

/** Runs tests; `figures` returns the JSON that they printed after a given word. */
async function tests(files, environment, atOnce) {
  const vitest = [join("node_modules", "vitest", "vitest.mjs"), "run", ...files];
  const env = { ...process.env, ...environment, TEST_CONCURRENCY: String(atOnce) };
  const child = spawn(process.execPath, vitest, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  const isGreen = (await new Promise((resolve) => child.on("close", resolve))) === 0;
  const plain = stripVTControlCharacters(output);
  if (!isGreen) console.error(plain);
  return {
    isGreen,
    figures: (word) => [...plain.matchAll(new RegExp(`^${word} (\\{.*\\})$`, "gm"))].map(([, row]) => JSON.parse(row)),
  };
}

// When run directly: `node tools/matrix/whip.mjs [SECONDS]`.
if (import.meta.filename === process.argv[1]) process.exit((await matrix(process.argv.slice(2))) ? 0 : 1);
