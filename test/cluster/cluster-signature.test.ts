// Calls between nodes: only a node can make one, and nobody can replay or alter it.
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { CallVerifier, signCall } from "../../ts/cluster/signature.ts";

const KEY = randomBytes(32);
const NOW = 1_767_225_600_000;
const CALL = {
  method: "POST",
  target: "/passed-on/session/7/kick?x=1",
  body: Buffer.from("{}"),
  client: "203.0.113.7",
};

test("a signed call is accepted once", () => {
  const verifier = new CallVerifier(KEY);
  const signed = signCall(KEY, CALL, NOW);
  expect(verifier.holds(signed, CALL, NOW + 1_000)).toBe(true);
  expect(verifier.holds(signed, CALL, NOW + 1_000)).toBe(false);
});

test.each([
  ["another method", { ...CALL, method: "DELETE" }],
  ["another path", { ...CALL, target: "/passed-on/session/8/kick?x=1" }],
  ["another query", { ...CALL, target: "/passed-on/session/7/kick?x=2" }],
  ["another body", { ...CALL, body: Buffer.from("{} ") }],
  ["another client", { ...CALL, client: "203.0.113.8" }],
  ["what stood in the path in the method", { ...CALL, method: "POST\n/passed-on", target: "/session/7/kick?x=1" }],
])("a call with %s is rejected", (_, changed) => {
  expect(new CallVerifier(KEY).holds(signCall(KEY, CALL, NOW), changed, NOW)).toBe(false);
});

test.each([
  ["another key", signCall(randomBytes(32), CALL, NOW)],
  ["an old time", signCall(KEY, CALL, NOW - 31_000)],
  ["a time to come", signCall(KEY, CALL, NOW + 31_000)],
  ["a time that was changed", signCall(KEY, CALL, NOW).replace(/^\d+/, String(NOW + 1))],
  ["half a signature", signCall(KEY, CALL, NOW).slice(0, -32)],
  ["no form", "x"],
  ["nothing", undefined],
])("a signature with %s is rejected", (_, signed) => {
  expect(new CallVerifier(KEY).holds(signed, CALL, NOW)).toBe(false);
});

test("a signature is forgotten only once it is too old to be accepted", () => {
  const verifier = new CallVerifier(KEY);
  const signed = signCall(KEY, CALL, NOW);
  expect(verifier.holds(signed, CALL, NOW)).toBe(true);
  for (let at = NOW; at <= NOW + 120_000; at += 1_000) verifier.holds(signCall(KEY, CALL, at), CALL, at);
  expect(verifier.holds(signed, CALL, NOW + 120_000)).toBe(false);
});

test("after the clock is set back, calls are accepted once each, for however long", () => {
  const verifier = new CallVerifier(KEY);
  const before = signCall(KEY, CALL, NOW);
  expect(verifier.holds(before, CALL, NOW)).toBe(true);
  for (const stepMs of [45_000, 86_400_000]) {
    const start = NOW - stepMs;
    let refused = 0;
    // 1,000 a second: far more than are remembered.
    for (let n = 0; n < 300_000; n += 1) {
      const at = start + Math.floor(n / 1_000);
      if (n % 50 === 0 && !verifier.holds(signCall(KEY, CALL, at), CALL, at)) refused += 1;
    }
    expect(refused).toBe(0);
    expect(verifier.holds(before, CALL, NOW)).toBe(false);
  }
});
