// Customers read the body with the form parser of their language: PHP, Python, Go and Node must all see our fields, and
// the custom arguments of well-behaved broadcasters (W1, W3).
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { parse as parseQuery } from "node:querystring";
import { describe, expect, test } from "vitest";
import { checkStreamName } from "../ts/publish/stream-name.ts";
import { doneBody, publishBody, updateBody } from "../ts/publish/webhook-body.ts";

type Fields = Readonly<Record<string, string>>;
type Parser = (bodies: readonly Buffer[]) => readonly Fields[];

const FOLDER = join("test", "fixtures", "form-parsers");
/** Kept between runs: Go builds its own library the first time. */
const GO_CACHE = resolve(".build", "go-cache");

/** A program that answers lines of base64 with lines of JSON whose names and values are base64. */
function program(command: string, ...args: string[]): Parser {
  return (bodies) => {
    const input = bodies.map((body) => `${body.toString("base64")}\n`).join("");
    const env = { ...process.env, GOCACHE: GO_CACHE, GO111MODULE: "off" };
    const lines = execFileSync(command, args, { input, env, encoding: "utf8" }).trim().split("\n");
    return lines.map((line) => {
      const entries = Object.entries(JSON.parse(line) as Fields);
      const text = (encoded: string) => Buffer.from(encoded, "base64").toString("latin1");
      return Object.fromEntries(entries.map(([name, value]) => [text(name), text(value)]));
    });
  };
}

const latin1 = (value: string) => Buffer.from(value, "utf8").toString("latin1");
/** The first of repeated values: what a broadcaster could say first must not matter. */
const first = (value: string | string[] | undefined) => latin1((Array.isArray(value) ? value[0] : value) ?? "");
const PARSERS: Readonly<Record<string, Parser>> = {
  PHP: program("php", join(FOLDER, "parse.php")),
  Python: program("python3", join(FOLDER, "parse.py")),
  Go: program("go", "run", join(FOLDER, "parse.go")),
  "Node, URLSearchParams": (bodies) =>
    bodies.map((body) => {
      const fields = new URLSearchParams(body.toString("latin1"));
      return Object.fromEntries([...fields.keys()].map((name) => [name, latin1(fields.get(name) ?? "")]));
    }),
  "Node, querystring": (bodies) =>
    bodies.map((body) => {
      const fields = Object.entries(parseQuery(body.toString("latin1")));
      return Object.fromEntries(fields.map(([name, value]) => [name, first(value)]));
    }),
};

const subject = { name: "Ab1Cd-9XyZ0", app: "live", address: "2001:db8::7", clientId: 100482 };
/** What some parser is known to trip over; none of it may reach our fields. */
const ODD = [
  "",
  "a",
  "=",
  "&&",
  "%",
  "%zz=%",
  "a=%3D&b=;",
  "x[]=1&x[]=2",
  "a=1;b=2",
  "?k=v",
  "a=b=c",
  "\xe9=\xff",
  "+=+",
];
const PLAIN = "passcode=s3cr%C3%A9t%20x&time=1767225600&sig=a%2Bb%2Fc%3D%3D";

describe.each(Object.entries(PARSERS))("with the form parser of %s", (_, parse) => {
  test("every event says the same for every arguments that are let through", () => {
    const custom = [...ODD, PLAIN].map((text) => Buffer.from(text, "latin1"));
    for (const args of custom) expect(checkStreamName(Buffer.from("n"), args).outcome).toBe("accepted");
    const events = custom.flatMap((args) => [
      publishBody({ ...subject, arguments: args }),
      updateBody({ ...subject, arguments: args }, { time: 30, timestamp: 29_960 }),
      doneBody({ ...subject, arguments: args }, { bytesIn: 9_007_199_254_740_991, bytesOut: 7 }),
    ]);
    const parsed = parse(events.map((body) => Buffer.from(body)));
    const common = { name: "Ab1Cd-9XyZ0", app: "live", addr: "2001:db8::7", clientid: "100482" };
    for (let at = 0; at < parsed.length; at += 3) {
      expect(parsed[at]).toMatchObject({ call: "publish", ...common });
      expect(parsed[at + 1]).toMatchObject({ call: "update_publish", timestamp: "29960", ...common });
      expect(parsed[at + 2]).toMatchObject({
        call: "publish_done",
        bytes_in: "9007199254740991",
        bytes_out: "7",
        ...common,
      });
    }
    expect(parsed.at(-3)).toMatchObject({ passcode: latin1("s3crét x"), time: "1767225600", sig: "a+b/c==" });
  }, 120_000);
});
