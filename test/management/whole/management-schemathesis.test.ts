// schemathesis against a running gateway: more than a thousand requests that the OpenAPI document allows or
// forbids. None may be answered by a 5xx, by a status or content type that is not documented, or by a body of
// another shape.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { providePython } from "../../../scripts/python.mjs";
import { start } from "../../support/child.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { isWholeRun } from "../../support/whole-run.ts";

const CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/** Random requests per route, in addition to those at the limits of its schemas; the seed makes failures
 *  reproducible. */
const EXAMPLES = isWholeRun ? "5" : "1";
const SEED = "1";
/** Files of the page, WHIP's offers and fragments, and events, which do not end: not JSON, and all tested
 *  elsewhere. */
const ELSEWHERE = "^/(docs|organisation/events$|p/webrtc(/[{]session[}])?$)";
const LIMIT_MS = 240_000;

let python: string;
let folder: string;
let headgate: Headgate;

beforeAll(async () => {
  python = providePython();
  folder = mkdtempSync(join(tmpdir(), "headgate-schemathesis-"));
  headgate = await startHeadgate({ env: { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", HEADGATE_DEV: "" } });
}, LIMIT_MS);

afterAll(async () => {
  await headgate?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test(
  "every answer is documented, whatever the request",
  async () => {
    const tester = start(
      python,
      [
        ...[
          "-m",
          "schemathesis.cli",
          "run",
          `${headgate.http}/openapi.json`,
          "--header",
          `x-service-apikey: ${headgate.apiKey}`,
        ],
        ...["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", SEED],
        ...["--exclude-path-regex", ELSEWHERE, "--workers", "2", "--no-color", "--generation-database", "none"],
      ],
      { cwd: folder },
    ); // it creates a folder in its working directory
    const code = await tester.exit;
    const told = `${tester.stdout()}\n${tester.stderr()}`;
    expect(code, told).toBe(0);
    expect(Number(/(\d+) generated/.exec(told)?.[1] ?? 0), told).toBeGreaterThan(500);
    expect(headgate.process.stderr()).not.toContain('"level":50');
  },
  LIMIT_MS,
);
