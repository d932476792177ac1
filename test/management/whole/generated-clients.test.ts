// Clients generated from the running service's /openapi.json by third-party generators, for Python and for
// Go: they pass the type checker or the compiler of their language, call every route, and know the type of
// every answer.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { provideGo, provideOapiCodegen } from "../../../scripts/go.mjs";
import { providePython } from "../../../scripts/python.mjs";
import { start } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { expectDecoded, expectEveryRoute, runProgram } from "../../support/generated-client.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";

const PROGRAMS = "test/fixtures/generated-clients";
/** Kept between runs, so that unchanged code is not checked again. */
const MYPY_CACHE = resolve(".build", "mypy-cache");
/** What openapi-python-client omits: it sends JSON, forms and files, but these two routes take SDP. */
const WITHOUT_SDP = ["postWhip", "patchWhipSession"];
/** Called, and refused: no upstream waits for its next attempt long enough. */
const ONLY_REFUSED = ["postStreamByIdUpstreamByUpstreamidRetry"];
/** A machine under load builds slowly, and a bare one first fetches the tools. */
const LIMIT_MS = 600_000;

let customer: Customer;
let headgate: Headgate;
let folder: string;

beforeAll(async () => {
  customer = await startCustomer();
  folder = mkdtempSync(join(tmpdir(), "headgate-clients-"));
  headgate = await startHeadgate({
    customer,
    env: {
      HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
      HEADGATE_LOG_FORMAT: "json",
      HEADGATE_LOG_LEVEL: "debug",
      HEADGATE_CAPTURE_DIRECTORY: join(folder, "captures"),
    },
  });
  writeFileSync(join(folder, "openapi.json"), await (await fetch(`${headgate.http}/openapi.json`)).text());
});

afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A new folder with the program of one language, next to the document. */
function programFolder(language: string): string {
  const own = join(folder, language);
  mkdirSync(own);
  for (const name of readdirSync(join(PROGRAMS, language))) {
    copyFileSync(join(PROGRAMS, language, name), join(own, name));
  }
  return own;
}

/** Runs a tool to its end and returns its output. */
async function said(
  cwd: string,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const tool = start(command, args, { cwd, env: { ...process.env, ...env } });
  const code = await tool.exit;
  const text = `${tool.stdout()}\n${tool.stderr()}`;
  expect(code, text).toBe(0);
  return text;
}

test(
  "Python: openapi-python-client's client passes mypy, calls every route and knows every answer",
  async () => {
    const python = providePython();
    const own = programFolder("python");
    const target = ["--path", "../openapi.json", "--output-path", "headgate_client", "--meta", "none"];
    // It has no type for video and pictures; it passes these bytes on unchanged.
    const overrides =
      "content_type_overrides:\n  video/x-flv: application/octet-stream\n  image/png: application/octet-stream\n";
    writeFileSync(join(own, "settings.yaml"), `post_hooks: []\n${overrides}`);
    const generate = ["-m", "openapi_python_client", "generate", ...target, "--config", "settings.yaml"];
    const warnings = await said(own, python, generate);
    const left = [...warnings.matchAll(/^WARNING parsing (\w+ \S+)/gm)].map(([, route]) => route);
    expect(left, warnings).toEqual(["POST /p/webrtc", "PATCH /p/webrtc/{session}"]);
    await said(own, python, ["-m", "mypy", "--strict", "--cache-dir", MYPY_CACHE, "every_route.py", "headgate_client"]);

    const told = await runProgram([python, "every_route.py"], own, { headgate, customer });
    await expectEveryRoute(told, headgate, [...WITHOUT_SDP, ...ONLY_REFUSED]);
    expectDecoded(told);
    expect(statusesOf(told)).toEqual([200, 204, 400, 403, 404, 409, 413]);
  },
  LIMIT_MS,
);

test(
  "Go: oapi-codegen's client passes go vet, calls every route, SDP included, and knows every answer",
  async () => {
    const { go, env } = provideGo();
    const own = programFolder("go");
    mkdirSync(join(own, "headgate"));
    const settings = "package: headgate\ngenerate: { models: true, client: true }\noutput: headgate/headgate.go\n";
    writeFileSync(join(own, "settings.yaml"), settings);
    await said(own, provideOapiCodegen(), ["-config", "settings.yaml", "../openapi.json"]);
    await said(own, go, ["vet", "./..."], env);
    await said(own, go, ["build", "-o", "every-route", "."], env);

    const told = await runProgram([join(own, "every-route")], own, { headgate, customer });
    await expectEveryRoute(told, headgate, ONLY_REFUSED);
    expectDecoded(told);
    expect(statusesOf(told)).toEqual([200, 201, 204, 400, 403, 404, 409, 412, 413, 415]);
  },
  LIMIT_MS,
);

const statusesOf = (told: readonly { readonly status: number }[]) =>
  [...new Set(told.map(({ status }) => status))].sort((a, b) => a - b);
