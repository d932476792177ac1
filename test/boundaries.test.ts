// Each rule of scripts/boundaries catches what it is there for.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { violations } from "../scripts/boundaries.mjs";

const planted: readonly [path: string, text: string, complaint: string][] = [
  ["ts/http/a.ts", 'import { b } from "./b.ts";', "http files never import each other"],
  ["ts/publish/a.ts", 'import { Hono } from "hono";', "publish knows no Hono"],
  ["ts/publish/a.ts", 'import { core } from "#native";', "only ts/media.ts imports #native"],
  ["ts/store/a.ts", 'import { admit } from "../publish/admission.ts";', "store may not import publish"],
  ["ts/token/a.ts", 'import { createApp } from "../app.ts";', "token may not import app"],
  ["ts/token/a.ts", "const home = process.env.HOME;", "only config.ts reads process.env"],
  ["ts/token/a.ts", "const now = Date.now();", "the clock is made in main.ts"],
  ["ts/token/a.ts", 'const { env } = process, home = process["env"];', "only config.ts reads process.env"],
  ["ts/token/a.ts", "const [first] = process.argv;", "only cli reads process.argv"],
  ["ts/token/a.ts", "const started = performance.now();", "has no stopwatch"],
  ["ts/store/a.mjs", 'import native from "../native/index.js";', "only ts/media.ts imports #native"],
  ["crates/media/src/a.rs", "let now = Instant::now();", "pure code does not name Instant::now"],
  ["crates/rtmp/src/a.rs", "use std::net::TcpStream;", "pure code does not name std::net::Tcp"],
  ["crates/ingest/src/hub.rs", "since.elapsed()", "pure code does not name .elapsed()"],
  ["crates/media/src/a.rs", "use mio::net::TcpStream;", "pure code does not name mio::"],
  ["crates/media/src/latest.rs", "SystemTime::now()", "pure code does not name SystemTime::now"],
  [
    "crates/rtmp/src/a.rs",
    "#[cfg(test)]\nmod tests;\n\nfn turn() { Instant::now(); }",
    "pure code does not name Instant::now",
  ],
  ["crates/ingest/src/a.rs", "use napi::Env;", "napi does not belong here"],
  ["crates/whip/src/session.rs", "use rtc_dtls::endpoint;", "webrtc-rs does not belong here"],
  ["crates/ingest/src/a.rs", "opus::Decoder::new()", "a codec library does not belong here"],
  ["crates/rtmp/Cargo.toml", "[dependencies]\nheadgate-media.workspace = true", "rtmp may not depend on media"],
  ["crates/whip/Cargo.toml", '[dev-dependencies]\nr = { package = "headgate-rtmp" }', "whip may not depend on rtmp"],
  ["crates/rtmp/Cargo.toml", "[dependencies]\nmio.workspace = true", "rtmp is pure, without mio"],
  ["crates/ingest/Cargo.toml", "[dev-dependencies]\n[dependencies]\nnapi = 3", "napi does not belong here"],
  ["crates/ingest/Cargo.toml", "[dependencies.opus]\nversion = 1", "a codec library does not belong here"],
  ["crates/drawer/Cargo.toml", "[package]", "drawer has no row in scripts/crate-boundaries.mjs"],
];

for (const [path, text, complaint] of planted) {
  test(`${path} with ${JSON.stringify(text)} is caught`, () => {
    const root = mkdtempSync(join(tmpdir(), "headgate-boundaries-"));
    mkdirSync(join(root, dirname(path)), { recursive: true });
    const manifest = path.endsWith(".rs") ? join(root, ...path.split("/").slice(0, 2), "Cargo.toml") : null;
    if (manifest) writeFileSync(manifest, "[package]\n");
    writeFileSync(join(root, path), text);
    expect(violations(root)).toEqual([`${path}: ${complaint}`]);
    rmSync(root, { recursive: true });
  });
}

test("a circle of value imports is caught in every file of it", () => {
  const root = mkdtempSync(join(tmpdir(), "headgate-boundaries-"));
  mkdirSync(join(root, "ts/token"), { recursive: true });
  writeFileSync(join(root, "ts/errors.ts"), 'import { a } from "./token/a.ts";');
  writeFileSync(join(root, "ts/token/a.ts"), 'import { b } from "../errors.ts";');
  const detours = ["ts/errors.ts", "ts/token/a.ts"].map((path) => `${path}: imports itself by a detour`);
  expect([...violations(root)].sort()).toEqual(detours);
  rmSync(root, { recursive: true });
});

test("types may be named in any direction, tests may read clocks", () => {
  const root = mkdtempSync(join(tmpdir(), "headgate-boundaries-"));
  for (const folder of ["ts/store", "crates/media/src"]) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, "ts/store/a.ts"), 'import type { Admission } from "../publish/admission.ts";');
  writeFileSync(
    join(root, "crates/media/src/a.rs"),
    "// Instant::now\n#[cfg(test)]\nmod tests { fn t() { Instant::now(); } }",
  );
  expect(violations(root)).toEqual([]);
  rmSync(root, { recursive: true });
});
