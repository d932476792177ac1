// How customers verify a call, as the dashboard shows it: each program runs as written, against calls signed
// by an independent library, by two secrets, forged, stale and truncated.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, expect, test } from "vitest";
import { isWholeRun } from "../support/whole-run.ts";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER = "whsec_HwAeAR0CHAMbBBoFGQYYBxcIFgkVChQLEwwSDREOEA8=";
const ID = "msg_01J9Z6Q3V5T0K8M2";
/** With bytes that are not UTF-8, which custom arguments may contain. */
const BODY = Buffer.from("passcode=s3cr\u00e9t\xff&call=publish&name=Ab1Cd-9XyZ0&clientid=7", "latin1");
const TOLERANCE_S = 300;

const folder = mkdtempSync(join(tmpdir(), "headgate-snippets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Call {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const now = () => Math.floor(Date.now() / 1_000);
/** HMAC of the bytes, as the library would compute it for text. */
function signed(body: Buffer, secret: string, sentAt: number): string {
  const text = body.toString("latin1");
  // The library signs text; what is not ASCII is compared byte by byte below.
  return /^[ -~]*$/.test(text)
    ? new Webhook(secret).sign(ID, new Date(sentAt * 1_000), text)
    : signedBytes(body, secret, sentAt);
}

function signedBytes(body: Buffer, secret: string, sentAt: number): string {
  const key = secret.replace("whsec_", "");
  const options = { input: Buffer.concat([Buffer.from(`${ID}.${sentAt}.`), body]) };
  const hex = Buffer.from(key, "base64").toString("hex");
  const digest = execFileSync(
    "openssl",
    ["dgst", "-sha256", "-mac", "HMAC", "-macopt", `hexkey:${hex}`, "-binary"],
    options,
  );
  return `v1,${digest.toString("base64")}`;
}

const ASCII = Buffer.from("passcode=s3cret&call=publish&name=Ab1Cd-9XyZ0&clientid=7");
function call(signature: string, body: Buffer = ASCII, sentAt: number = now(), id: string = ID): Call {
  return {
    headers: { "webhook-id": id, "webhook-timestamp": String(sentAt), "webhook-signature": signature },
    body: body.toString("base64"),
  };
}

/** Calls, and whether each is Headgate's. Created for each test, so that a slow machine does not make them
 *  stale. */
function cases(): readonly (readonly [name: string, call: Call, isOurs: boolean])[] {
  const at = now();
  const good = signed(ASCII, SECRET, at);
  const stale = at - TOLERANCE_S - 60;
  const early = at + TOLERANCE_S + 120;
  return [
    ["signed", call(good, ASCII, at), true],
    ["with bytes that are no text", call(signed(BODY, SECRET, at), BODY, at), true],
    ["by two secrets, ours first", call(`${good} ${signed(ASCII, OTHER, at)}`, ASCII, at), true],
    ["by two secrets, ours last", call(`${signed(ASCII, OTHER, at)} ${good}`, ASCII, at), true],
    ["by another secret", call(signed(ASCII, OTHER, at), ASCII, at), false],
    ["with another body", call(good, Buffer.concat([ASCII, Buffer.from("1")]), at), false],
    ["under another id", call(good, ASCII, at, "msg_other"), false],
    ["five minutes old", call(signed(ASCII, SECRET, stale), ASCII, stale), false],
    ["of the future", call(signed(ASCII, SECRET, early), ASCII, early), false],
    ["with a signature cut off", call(good.slice(0, -4), ASCII, at), false],
    ["with an empty signature", call("v1,", ASCII, at), false],
    ["of another version", call(good.replace("v1,", "v2,"), ASCII, at), false],
    [
      "with a time that is none",
      { ...call(good, ASCII, at), headers: { ...call(good).headers, "webhook-timestamp": "now" } },
      false,
    ],
    ["without headers", { headers: {}, body: ASCII.toString("base64") }, false],
  ];
}

const snippet = (name: string) => readFileSync(`ts/dashboard/webhook/snippets/${name}.txt`, "utf8");

/** Each program reads the cases as JSON and prints a JSON array of booleans. */
const PROGRAMS: Readonly<Record<string, (input: string) => string>> = {
  "Node.js"(input) {
    writeFileSync(join(folder, "verify.mjs"), snippet("node"));
    const main = `import { isFromHeadgate } from "./verify.mjs"; import { readFileSync } from "node:fs";
      const cases = JSON.parse(readFileSync(0, "utf8"));
      console.log(JSON.stringify(cases.map(({ headers, body }) => isFromHeadgate(headers, Buffer.from(body, "base64"), "${SECRET}"))));`;
    writeFileSync(join(folder, "main.mjs"), main);
    return execFileSync(process.execPath, ["main.mjs"], { cwd: folder, input }).toString();
  },
  Python(input) {
    const main = `
import base64, json, sys
print(json.dumps([is_from_headgate(one["headers"], base64.b64decode(one["body"]), "${SECRET}") for one in json.load(sys.stdin)]))
`;
    writeFileSync(join(folder, "verify.py"), snippet("python") + main);
    return execFileSync("python3", ["verify.py"], { cwd: folder, input }).toString();
  },
  PHP(input) {
    const main = `
$results = [];
foreach (json_decode(file_get_contents("php://stdin"), true) as $one) {
    $server = [];
    foreach ($one["headers"] as $name => $value) $server["HTTP_" . strtoupper(str_replace("-", "_", $name))] = $value;
    $results[] = isFromHeadgate($server, base64_decode($one["body"]), "${SECRET}");
}
echo json_encode($results);
`;
    writeFileSync(join(folder, "verify.php"), snippet("php") + main);
    return execFileSync("php", ["verify.php"], { cwd: folder, input }).toString();
  },
  Go(input) {
    const main = `package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	var cases []struct {
		Headers map[string]string
		Body    []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	results := []bool{}
	for _, one := range cases {
		header := http.Header{}
		for name, value := range one.Headers {
			header.Set(name, value)
		}
		results = append(results, IsFromHeadgate(header, one.Body, "${SECRET}"))
	}
	json.NewEncoder(os.Stdout).Encode(results)
}
`;
    writeFileSync(join(folder, "verify.go"), snippet("go").replace("package headgate", "package main"));
    writeFileSync(join(folder, "main.go"), main);
    writeFileSync(join(folder, "go.mod"), "module verify\n\ngo 1.19\n");
    const env = { ...process.env, GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" };
    execFileSync("go", ["build", "-o", "verify", "."], { cwd: folder, env });
    return execFileSync(join(folder, "verify"), { input }).toString();
  },
};

test.each(Object.keys(PROGRAMS).filter((language) => isWholeRun || language !== "Go"))(
  "in %s our calls are accepted and all others are not",
  (language) => {
    // The Go program is built before its cases are made, which contain the current time.
    PROGRAMS[language]?.("[]");
    const given = cases();
    const results = JSON.parse(PROGRAMS[language]?.(JSON.stringify(given.map(([, call]) => call))) ?? "") as boolean[];
    const told = given.map(([name], index) => [name, results[index]]);
    expect(told).toEqual(given.map(([name, , isOurs]) => [name, isOurs]));
  },
  120_000,
);
