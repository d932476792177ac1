// Webhook bodies, stream names and custom arguments: docs/webhook.md, decisions W1–W4 and W23.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { alsoReservedField, checkStreamName } from "../../ts/publish/stream-name.ts";
import { isConfiguredUpstream, writeUpstreams } from "../../ts/publish/upstreams/deployment-upstreams.ts";
import { doneBody, publishBody, updateBody } from "../../ts/publish/webhook/body.ts";

const subject = { arguments: null, name: "Ab1Cd-9XyZ0", app: "live", address: "203.0.113.7", clientId: 100482 };
const bytes = (text: string) => Buffer.from(text, "latin1");
const text = (body: Uint8Array) => Buffer.from(body).toString("latin1");

describe("the body", () => {
  test("of publish has call, name, app, addr, clientid", () => {
    expect(text(publishBody(subject))).toBe("call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482");
  });

  test("of update_publish has time and timestamp after call", () => {
    expect(text(updateBody(subject, { time: 30, timestamp: 30012 }))).toBe(
      "call=update_publish&time=30&timestamp=30012&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482",
    );
  });

  test("of publish_done has the byte counts after name", () => {
    expect(text(doneBody(subject, { bytesIn: 9_007_199_254_740_991, bytesOut: 0 }))).toBe(
      "call=publish_done&name=Ab1Cd-9XyZ0&bytes_in=9007199254740991&bytes_out=0&app=live&addr=203.0.113.7&clientid=100482",
    );
  });

  test("begins with the custom arguments on every event", () => {
    const withArguments = { ...subject, arguments: bytes("passcode=s3cret") };
    expect(text(publishBody(withArguments))).toBe(
      "passcode=s3cret&call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482",
    );
    expect(text(updateBody(withArguments, { time: 0, timestamp: 0 }))).toMatch(
      /^passcode=s3cret&call=update_publish&time=0&/,
    );
    expect(text(doneBody(withArguments, { bytesIn: 1, bytesOut: 2 }))).toMatch(
      /^passcode=s3cret&call=publish_done&name=/,
    );
  });

  test.each(["%", "%zz=%", "&", "a=b&&c", "a=/?x=1?y", "\xe9=\xff\x80", "a=%C3%A9+b", "=", " a = b ", '"<>\\^`{|}~'])(
    "forwards %j unchanged",
    (odd) => {
      expect(text(publishBody({ ...subject, arguments: bytes(odd) }))).toBe(`${odd}&${text(publishBody(subject))}`);
    },
  );

  test("begins with call when the arguments are empty", () => {
    expect(text(publishBody({ ...subject, arguments: bytes("") }))).toMatch(/^call=publish&/);
  });

  test("form-encodes the fixed values", () => {
    const odd = { ...subject, name: "a b&c=d/é", address: "2001:db8::7" };
    expect(text(publishBody(odd))).toBe(
      "call=publish&name=a+b%26c%3Dd%2F%C3%A9&app=live&addr=2001%3Adb8%3A%3A7&clientid=100482",
    );
  });

  test("forwards arguments byte for byte, or the publish is refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2100 }), (custom) => {
        const check = checkStreamName(bytes("name"), custom);
        if (check.outcome === "refused") return check.description.length > 0;
        const body = publishBody({ ...subject, arguments: custom });
        const fixed = publishBody(subject);
        const head = Buffer.from(body).subarray(0, body.length - fixed.length);
        const expected = custom.length === 0 ? Buffer.alloc(0) : Buffer.concat([custom, bytes("&")]);
        return head.equals(expected) && Buffer.from(body).subarray(head.length).equals(fixed);
      }),
      { numRuns: 2_000 },
    );
  });

  test("cannot contain another call, name or byte count for a first-wins parser", () => {
    const field = fc.constantFrom(
      "call",
      "NAME",
      "%63all",
      "bytes.in",
      "bytes+out",
      " app",
      "addr[]",
      "clientid",
      "passcode",
      "x",
    );
    const pair = fc.tuple(
      field,
      fc.constantFrom("=", "==", "%3D", ""),
      fc.string({ maxLength: 4 }),
      fc.constantFrom("&", ";"),
    );
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 6 }), (pairs) => {
        const custom = Buffer.from(pairs.flat().join(""));
        const check = checkStreamName(bytes("name"), custom);
        if (check.outcome === "refused") return true;
        const seen = new URLSearchParams(text(publishBody({ ...subject, arguments: custom })));
        return (
          seen.get("call") === "publish" && seen.get("name") === subject.name && seen.get("addr") === subject.address
        );
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a stream name", () => {
  const outcome = (name: Uint8Array, custom: Uint8Array | null = null) => checkStreamName(name, custom).outcome;

  test("is accepted up to 255 bytes and its arguments up to 2048", () => {
    expect(outcome(Buffer.alloc(255, "a"), Buffer.alloc(2048, "b"))).toBe("accepted");
    expect(outcome(Buffer.alloc(256, "a"))).toBe("refused");
    expect(outcome(bytes("a"), Buffer.alloc(2049, "b"))).toBe("refused");
  });

  test.each(["", "a\0", "a\nb", "\x7f", "\xff"])("%j is refused", (name) => {
    expect(outcome(bytes(name))).toBe("refused");
  });

  test.each(["a=\r\n", "\0", "a\tb", "\x7f", "\x1f"])("with arguments %j is refused", (custom) => {
    expect(outcome(bytes("name"), bytes(custom))).toBe("refused");
  });

  test.each([
    "call=publish",
    "name=x",
    "app=x",
    "addr=1",
    "clientid=1",
    "bytes_in=1",
    "bytes_out=1",
    "call",
    "a=1&name=x",
    "a=1;name=x",
    "CALL=x",
    "%63%61ll=x",
    "+name=x",
    "name+=x",
    "%20name=x",
    "name%09=x",
    "name[]=x",
    "name[a][b]=x",
    "name%5B%5D=x",
    "bytes.in=1",
    "bytes+in=1",
    "bytes%20out=1",
    "bytes%2eout=1",
    "name%00x=1",
    "ClientID=1",
    "&&name",
    "a;b&c;app=1",
    "name==",
    "?name=x",
    "??name=x",
    "?a=1&call",
  ])("with reserved arguments %s is refused", (custom) => {
    expect(checkStreamName(bytes("name"), bytes(custom))).toMatchObject({
      outcome: "refused",
      cause: "reserved_field",
    });
  });

  test.each([
    "time=1",
    "timestamp=2",
    "names=x",
    "x=name",
    "x=call%26",
    "xname=1",
    "token=call",
    "%256eame=x",
    "_name=x",
    "call_=x",
    "%=name",
    "%n",
  ])("with arguments %s is accepted", (custom) => {
    expect(outcome(bytes("name"), bytes(custom))).toBe("accepted");
  });

  test("with time or timestamp is refused only with strict arguments", () => {
    const settings = { strict_arguments: true, update_fields: [] };
    expect(alsoReservedField(bytes("a=b&Timestamp=1"), settings)).toBe("timestamp");
    expect(alsoReservedField(bytes("a=b&timestamp=1"), { ...settings, strict_arguments: false })).toBeNull();
  });

  test("with a field that the organisation has in its updates is refused", () => {
    const settings = { strict_arguments: false, update_fields: ["bitrate", "rtt"] };
    expect(alsoReservedField(bytes("x=1;%62itrate=9"), settings)).toBe("bitrate");
    expect(alsoReservedField(bytes("fps=1"), settings)).toBeNull();
  });

  test("is never repeated in a refusal", () => {
    const check = checkStreamName(bytes("name"), bytes("passcode=s3cret&call=x"));
    expect(JSON.stringify(check)).not.toContain("s3cret");
  });
});

describe("an upstream", () => {
  const template = "rtmp://up.example/live/{name}?{args}";

  test("gets the name and the arguments verbatim", () => {
    expect(writeUpstreams([template], "n", bytes("a=$&{name}&b=$1"))).toEqual([
      "rtmp://up.example/live/n?a=$&{name}&b=$1",
    ]);
  });

  test("loses its trailing question mark without arguments", () => {
    expect(
      writeUpstreams(
        [template, "rtmp://up.example/live/{name}", "rtmp://up.example/live/{name}?k=v&{args}"],
        "n",
        null,
      ),
    ).toEqual(["rtmp://up.example/live/n", "rtmp://up.example/live/n", "rtmp://up.example/live/n?k=v&"]);
  });

  test("is not given arguments that are not valid text", () => {
    expect(writeUpstreams([template], "n", bytes("a=\xff"))).toBeNull();
    expect(writeUpstreams(["rtmp://up.example/live/{name}"], "n", bytes("a=\xff"))).toEqual([
      "rtmp://up.example/live/n",
    ]);
    expect(writeUpstreams([template], "n", Buffer.from("a=é"))).toEqual(["rtmp://up.example/live/n?a=é"]);
  });

  test("is recognised by its host", () => {
    expect(isConfiguredUpstream(["rtmp://Up.example:1936/live/{name}"], "up.example")).toBe(true);
    expect(isConfiguredUpstream(["rtmp://[::1]:1936/live/{name}"], "::1")).toBe(true);
    expect(isConfiguredUpstream(["rtmp://up.example/live/{name}"], "example")).toBe(false);
  });
});
