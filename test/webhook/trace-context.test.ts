// W3C Trace Context: what is read from traceparent and tracestate, and which headers are sent on.
import { describe, expect, test } from "vitest";
import {
  newTrace,
  readTraceparent,
  readTracestate,
  traceFrom,
  traceHeaders,
  traceOf,
  traceText,
} from "../../ts/tracing/trace.ts";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";

describe("a traceparent is followed", () => {
  test.each([
    ["with the sampled flag", `00-${ID}-${PARENT}-01`, true],
    ["without it", `00-${ID}-${PARENT}-00`, false],
    ["whose other flags are unknown", `00-${ID}-${PARENT}-fe`, false],
    ["with all flags", `00-${ID}-${PARENT}-ff`, true],
    ["of a later version that looks the same", `01-${ID}-${PARENT}-01`, true],
    ["of a later version with more behind a dash", `cc-${ID}-${PARENT}-01-what-the-future-will-be`, true],
    ["of a later version that ends in a dash", `cc-${ID}-${PARENT}-01-`, true],
  ])("%s", (_, header, isSampled) => {
    expect(readTraceparent(header)).toEqual({ traceId: ID, isSampled });
  });
});

describe("a traceparent is ignored", () => {
  test.each([
    ["that is empty", ""],
    ["of version ff", `ff-${ID}-${PARENT}-01`],
    ["with a trace id of zeros", `00-${"0".repeat(32)}-${PARENT}-01`],
    ["with a parent id of zeros", `00-${ID}-${"0".repeat(16)}-01`],
    ["with capital digits in the trace id", `00-${ID.toUpperCase()}-${PARENT}-01`],
    ["with capital digits in the parent id", `00-${ID}-${PARENT.toUpperCase()}-01`],
    ["with a capital digit in the version", `0A-${ID}-${PARENT}-01`],
    ["with a capital digit in the flags", `00-${ID}-${PARENT}-0A`],
    ["whose trace id is too short", `00-${ID.slice(1)}-${PARENT}-01`],
    ["whose trace id is too long", `00-${ID}0-${PARENT}-01`],
    ["whose parent id is too short", `00-${ID}-${PARENT.slice(1)}-01`],
    ["whose parent id is too long", `00-${ID}-${PARENT}0-01`],
    ["whose flags have one digit", `00-${ID}-${PARENT}-1`],
    ["whose flags have three digits", `00-${ID}-${PARENT}-001`],
    ["whose version has one digit", `0-${ID}-${PARENT}-01`],
    ["whose version has three digits", `000-${ID}-${PARENT}-01`],
    ["with letters that are no digits", `00-${ID.replace("4", "g")}-${PARENT}-01`],
    ["with dots in between", `00.${ID}.${PARENT}.01`],
    ["of version 00 with more behind", `00-${ID}-${PARENT}-01-what-the-future-will-be`],
    ["of a later version with more that no dash parts", `cc-${ID}-${PARENT}-01.what-the-future-will-be`],
    ["that came twice", `00-${ID}-${PARENT}-01, 00-${ID}-${PARENT}-01`],
    ["with a space around it", ` 00-${ID}-${PARENT}-01`],
  ])("%s", (_, header) => {
    expect(readTraceparent(header)).toBeNull();
    expect(traceOf(header, "congo=t61rcWkgMzE")).toMatchObject({ state: null });
    expect(traceOf(header, null).traceId).not.toBe(ID);
  });
});

describe("a tracestate", () => {
  const long = (key: string, length: number) => `${key}=${"v".repeat(length - key.length - 1)}`;
  test.each([
    ["is passed on", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
    ["loses spaces, tabs and empty members", "rojo=1 ,\tcongo=2,,", "rojo=1,congo=2"],
    ["may have keys of several tenants", "fw529a3039@dt=1,0tenant@a=2", "fw529a3039@dt=1,0tenant@a=2"],
    ["may have an equals sign in no value", "rojo=1=2", null],
    ["is dropped with a key in capitals", "Rojo=1,congo=2", null],
    ["is dropped with a key that begins with a digit", "0rojo=1", null],
    ["is dropped with an empty value", "rojo=,congo=2", null],
    ["is dropped with a key twice", "rojo=1,rojo=2", null],
    ["is dropped with a value of 257 characters", `rojo=${"v".repeat(257)}`, null],
    ["is dropped with 33 members", Array.from({ length: 33 }, (_, n) => `k${n}=1`).join(","), null],
    ["may have 32 members", Array.from({ length: 32 }, (_, n) => `k${n}=1`).join(","), expect.stringMatching(/k31=1$/)],
    ["is none when it is empty", "", null],
    [
      "loses long members first when it is too long",
      `${long("a", 200)},${long("b", 128)},${long("c", 200)}`,
      long("b", 128),
    ],
    [
      "then loses those at its end",
      ["a", "b", "c", "d", "e"].map((key) => long(key, 120)).join(","),
      ["a", "b", "c", "d"].map((key) => long(key, 120)).join(","),
    ],
  ])("%s", (_, header, passedOn) => {
    expect(readTracestate(header)).toEqual(passedOn);
  });
});

test("outgoing requests are in the same trace, each in a span of its own", () => {
  const trace = traceOf(`00-${ID}-${PARENT}-01`, "congo=t61rcWkgMzE");
  const [first, second] = [traceHeaders(trace), traceHeaders(trace)];
  expect(first.traceparent).toMatch(new RegExp(`^00-${ID}-[0-9a-f]{16}-01$`));
  expect(first.tracestate).toBe("congo=t61rcWkgMzE");
  const spans = [first, second].map(({ traceparent }) => traceparent.split("-")[2]);
  expect(new Set([PARENT, trace.spanId, ...spans]).size).toBe(4);
});

test("a trace that is not sampled stays so, and one that begins here is sampled", () => {
  expect(traceHeaders(traceOf(`00-${ID}-${PARENT}-00`, null)).traceparent).toMatch(/-00$/);
  expect(traceHeaders(newTrace())).toEqual({ traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/) });
});

test("ids do not repeat", () => {
  const ids = Array.from({ length: 2_000 }, newTrace).flatMap(({ traceId, spanId }) => [traceId, spanId]);
  expect(new Set(ids).size).toBe(4_000);
  for (const id of ids) expect(id).toMatch(/^([0-9a-f]{16}|[0-9a-f]{32})$/);
});

test("a trace is unchanged after it was stored", () => {
  const trace = traceOf(`00-${ID}-${PARENT}-01`, "congo=t61rcWkgMzE");
  expect(traceFrom(traceText(trace))).toEqual({ ...trace, spanId: expect.any(String) });
  expect(traceFrom(null)).toBeNull();
});
