// What docs/architecture.md says of the code can be counted, and so can what hides where a dependency goes.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Files of each way: from an offer to its 201, and from a datagram to the upstream's socket. */
const WAYS = [
  ["an offer to its 201", 35],
  ["a datagram of video to the upstream's socket", 32],
] as const;
/** Spreads of all dependencies outside the place where the application is put together. */
const SPREADS_LIMIT = 3;

const inTypeScript = (pattern: RegExp) =>
  readdirSync("ts", { recursive: true, encoding: "utf8" })
    .filter((name) => /(?<!\.d)\.tsx?$/.test(name))
    .map((name) => `ts/${name}`)
    .flatMap((name) =>
      readFileSync(name, "utf8")
        .split("\n")
        .map((line) => ({ name, line })),
    )
    .filter(({ line }) => pattern.test(line))
    .map(({ name, line }) => `${name}: ${line.trim()}`);

test.each(WAYS)("the way from %s has the files that the document lists", (way, limit) => {
  const written = readFileSync("docs/architecture.md", "utf8").split(`Whoever follows ${way}`)[1] ?? "";
  const [, count, list = ""] = /^\s+reads these (\d+) files in this order.*?\n\n(.*?)\n\n/s.exec(written) ?? [];
  const files = [...list.matchAll(/`(\S+?)\.(ts|rs)`/g)].flatMap(([, path = "", kind = ""]) => {
    const [, before = path, names, after = ""] = /^(.*)\{(.*)\}(.*)$/.exec(path) ?? [];
    const folder = kind === "ts" ? "ts/" : path.startsWith("crates/") ? "" : "crates/ingest/src/";
    return (names?.split(",") ?? [""]).map((name) => `${folder}${before}${name}${after}.${kind}`);
  });
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
  expect(new Set(files).size).toBe(Number(count));
  expect(files.length).toBeLessThanOrEqual(limit);
});

test("dependencies are named where they are given, and types are not overridden", () => {
  const spreads = inTypeScript(/\.\.\.deps\b/).filter((line) => !line.startsWith("ts/app.ts:"));
  expect(spreads.length, spreads.join("\n")).toBeLessThanOrEqual(SPREADS_LIMIT);
  expect(inTypeScript(/\.\.\.\{/)).toEqual([]);
  expect(inTypeScript(/\bas unknown as\b/)).toEqual([]);
});
