// Third-party components in a release: their licences and sources, and their entries in the bill of
// materials.
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { billOf } from "../../tools/supply/bill.mjs";
import { type Component, components } from "../../tools/supply/components.mjs";
import { faultsOf, isAllowed } from "../../tools/supply/rules.mjs";

let all: readonly Component[];
beforeAll(() => {
  all = components();
}, 60_000);

const named = (name: string) => all.find((of) => of.name === name);

describe("the components of a release", () => {
  test("have allowed licences, come from their registries, and have a checksum", () => {
    expect(faultsOf(all)).toEqual([]);
  });

  test("are those of the media core, the gateway and the pages, and nothing that only builds or tests", () => {
    for (const name of ["rustls", "opusic-sys", "hono", "jose", "preact", "@picocss/pico", "uplot"]) {
      expect(named(name), name).toBeDefined();
    }
    for (const name of ["vitest", "@biomejs/biome", "rolldown", "typescript", "headgate-bench"]) {
      expect(named(name), name).toBeUndefined();
    }
    const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly dependencies: object };
    for (const name of Object.keys(dependencies)) expect(named(name), name).toBeDefined();
  });

  test.each([
    ["GPL-3.0-only", false],
    ["MIT AND GPL-2.0-only", false],
    ["MIT OR GPL-2.0-only", true],
    ["(MIT OR Apache-2.0) AND Unicode-3.0", true],
    ["SEE LICENSE IN README", false],
    ["", false],
  ])("with the licence %s: %s", (licence, may) => {
    expect(isAllowed(licence)).toBe(may);
  });

  test("from other sources, or without a checksum, are faults", () => {
    const one = { ...named("hono"), kind: "npm", name: "odd", version: "1.0.0", licence: "MIT" } as Component;
    expect(faultsOf([{ ...one, isFromRegistry: false, checksum: null }])).toEqual([
      "npm odd 1.0.0: does not come from its registry",
      "npm odd 1.0.0: the lock file has no checksum",
    ]);
  });
});

test("a bill of materials names each by its package URL and checksum, and is reproducible", () => {
  const bill = billOf(all, "1.2.3");
  expect(bill).toEqual(billOf(components(), "1.2.3"));
  expect(bill.components).toHaveLength(all.length);
  const of = (name: string) => bill.components.find((each) => each.name === name);
  expect(of("@hono/node-server")?.purl).toMatch(/^pkg:npm\/%40hono\/node-server@\d/);
  expect(of("@hono/node-server")?.hashes?.[0]).toMatchObject({
    alg: "SHA-512",
    content: expect.stringMatching(/^[0-9a-f]{128}$/),
  });
  expect(of("rustls")?.hashes?.[0]).toMatchObject({ alg: "SHA-256", content: expect.stringMatching(/^[0-9a-f]{64}$/) });
});
