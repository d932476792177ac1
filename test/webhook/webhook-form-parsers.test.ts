// Customers read the body with the form parser of their language: PHP, Python, Go and Node must all see our
// fields, and the custom arguments of well-behaved broadcasters (W1, W3).
import { describe, expect, test } from "vitest";
import { checkStreamName } from "../../ts/publish/stream-name.ts";
import { doneBody, publishBody, updateBody } from "../../ts/publish/webhook/body.ts";
import { type Fields, latin1, PARSERS } from "../support/form-parsers.ts";
import { oddArguments } from "../support/odd-arguments.ts";
import { isWholeRun } from "../support/whole-run.ts";

/** `npm run matrix -- arguments 1000000` tries more. */
const COUNT = Number(process.env.ARGUMENTS_COUNT ?? (isWholeRun ? 3_000 : 500));
const SEED = Number(process.env.ARGUMENTS_SEED ?? 1);
const BATCH = 20_000;

const subject = { name: "Ab1Cd-9XyZ0", app: "live", address: "2001:db8::7", clientId: 100482 };
/** Inputs that some parsers are known to handle wrongly; none of it may affect our fields. */
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

describe.each(Object.entries(PARSERS))("with the form parser of %s", (name, parse) => {
  test("every accepted broadcaster's arguments are read in the same way from every event", async () => {
    const custom = [...ODD, PLAIN].map((text) => Buffer.from(text, "latin1"));
    for (const args of custom) expect(checkStreamName(Buffer.from("n"), args).outcome).toBe("accepted");
    const events = custom.flatMap((args) => [
      publishBody({ ...subject, arguments: args }),
      updateBody({ ...subject, arguments: args }, { time: 30, timestamp: 29_960 }),
      doneBody({ ...subject, arguments: args }, { bytesIn: 9_007_199_254_740_991, bytesOut: 7 }),
    ]);
    const parsed = await parse(events.map((body) => Buffer.from(body)));
    const common = { name: "Ab1Cd-9XyZ0", app: "live", addr: "2001:db8::7", clientid: "100482" };
    for (let at = 0; at < parsed.length; at += 3) {
      // Rack answers with 400 when the encoding is invalid.
      if (parsed[at] === null) continue;
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

  test(
    "our seven fields are read as they were written, whatever hostile arguments precede them",
    async () => {
      let accepted = 0;
      for (let at = 0; at < COUNT; at += BATCH) {
        const all = oddArguments(Math.min(BATCH, COUNT - at), SEED + at);
        const custom = all.filter((args) => checkStreamName(Buffer.from("n"), args).outcome === "accepted");
        const bodies = custom.map((args) => Buffer.from(doneBody({ ...subject, arguments: args }, DONE)));
        const parsed = await parse(bodies);
        accepted += custom.length;
        const fooled = custom.filter((_, index) => isFooled(parsed[index]));
        expect(fooled.map((args) => args.toString("latin1"))).toEqual([]);
      }
      console.log(`arguments ${JSON.stringify({ parser: name, tried: COUNT, accepted })}`);
      expect(accepted).toBeGreaterThan(COUNT / 10);
    },
    120_000 + COUNT,
  );
});

const DONE = { bytesIn: 9_007_199_254_740_991, bytesOut: 7 };
const SEVEN: Fields = {
  call: "publish_done",
  name: "Ab1Cd-9XyZ0",
  bytes_in: "9007199254740991",
  bytes_out: "7",
  app: "live",
  addr: "2001:db8::7",
  clientid: "100482",
};

/** Null was answered with 400: no publish. */
function isFooled(fields: Fields | null | undefined): boolean {
  return fields !== null && Object.entries(SEVEN).some(([name, value]) => fields?.[name] !== value);
}

test.each([
  ["a byte order mark", "\xef\xbb\xbfname=VICTIM", "name"],
  ["an encoded byte order mark", "%EF%BB%BFname=VICTIM", "name"],
  ["a bracket in front", "[call]=x", "call"],
  ["an encoded bracket in front", "%5Bcall%5D=x", "call"],
  ["brackets in front, as Rack takes them", "][name]=x", "name"],
  ["a dot in front", ".name=x", "name"],
  ["a dot behind, which makes it an object", "addr.x", "addr"],
  ["a bracket that nothing closes, which PHP writes `_`", "bytes[in=1", "bytes_in"],
  ["%u escapes, which ASP.NET and Perl know", "%u006eame=x", "name"],
  ["an overlong form", "%c1%aeame=x", "name"],
  ["raw overlong bytes", "\xc1\xaeame=x", "name"],
  ["an invalid byte, dropped", "na%ffme=x", "name"],
  ["an invalid first byte that takes others along", "\xf0abcname=x", "name"],
  ["the same, over separators", "na\xf0&&&me=x", "name"],
  ["full width letters", "%EF%BD%8Eame=x", "name"],
])("%s does not hide a reserved field", (_, text, field) => {
  const check = checkStreamName(Buffer.from("n"), Buffer.from(text, "latin1"));
  expect(check).toMatchObject({
    outcome: "refused",
    cause: "reserved_field",
    description: expect.stringContaining(field),
  });
});

test.each([
  ["501 fields", `a${"&a".repeat(500)}`],
  ["501 fields between semicolons", `a${";a".repeat(500)}`],
])("%s are refused", (_, text) => {
  const check = checkStreamName(Buffer.from("n"), Buffer.from(text, "latin1"));
  expect(check).toMatchObject({ outcome: "refused", cause: "malformed_name" });
});

test("500 fields and unusual characters are accepted", () => {
  for (const text of [`a${"&a".repeat(499)}`, "a=€", "naïve=1", "unnamed=1", "recall=1"]) {
    expect(checkStreamName(Buffer.from("n"), Buffer.from(text)).outcome, text).toBe("accepted");
  }
});
