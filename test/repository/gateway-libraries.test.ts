// What a start loads: each library from the one file that the build made of it.
import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const DIST = join(import.meta.dirname, "..", "..", "dist");
const OF_BROWSERS = ["sdk", "broadcast", "dashboard", "guide", "release", "swagger-ui"];
const FROM = /^(?:import|export)\b[^;"]*?(?<=[\s}*])from ?"([^"]+)"|\bawait import\("([^"]+)"\)/gm;

const files = readdirSync(DIST, { recursive: true, encoding: "utf8" }).filter(
  (path) => /\.m?js$/.test(path) && !OF_BROWSERS.includes(path.split("/")[0] ?? ""),
);
const importsOf = (path: string) =>
  [...readFileSync(join(DIST, path), "utf8").matchAll(FROM)].map(([, always, later]) => always ?? later ?? "");
const isBare = (name: string) => !/^(\.|#|node:)/.test(name);

describe("the built gateway", () => {
  test("loads every library from dist/libraries", () => {
    const ours = files.filter((path) => !path.startsWith("libraries/"));
    expect(ours.length).toBeGreaterThan(200);
    expect(ours.flatMap(importsOf).filter(isBare)).toEqual([]);
    expect(importsOf("store/libsql.js")).toContain("../libraries/kysely.js");
  });

  test("contains libraries that need no other installed package", () => {
    const names = files.filter((path) => path.startsWith("libraries/")).flatMap(importsOf);
    expect(names.filter((name) => isBare(name) && !builtinModules.includes(name))).toEqual([]);
  });
});
