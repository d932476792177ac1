// Each rule of scripts/boundaries catches what it is meant to catch.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { violations } from "../../scripts/boundaries.mjs";

const planted: readonly [path: string, text: string, complaint: string][] = [
  ["ts/http/a.ts", 'import { b } from "./b.ts";', "http files never import each other"],
  ["ts/http/whip/a.ts", 'import { b } from "../b.ts";', "http files never import each other"],
  ["ts/http/request/a.ts", 'import { b } from "../openapi.ts";', "http/request may not import http"],
  ["ts/publish/webhook/a.ts", 'import { admit } from "../admission.ts";', "publish/webhook may not import publish"],
  [
    "ts/publish/addresses/a.ts",
    'import { b } from "../webhook/b.ts";',
    "publish/addresses may not import publish/webhook",
  ],
  ["ts/publish/a.ts", 'import { b } from "./whip/b.ts";', "publish may not import publish/whip"],
  ["ts/publish/webhook/a.ts", 'import { b } from "../../http/b.ts";', "publish may not import http"],
  ["ts/token/drawer/a.ts", "", "token/drawer has no row in scripts/boundaries.mjs"],
  ["ts/publish/a.ts", 'import { Hono } from "hono";', "publish may not import Hono"],
  ["ts/publish/a.ts", 'import { core } from "#native";', "only media imports #native"],
  ["ts/publish/a.ts", 'import { Agent } from "undici";', "undici is imported as undici/index.js"],
  ["ts/store/a.ts", 'import { admit } from "../publish/admission.ts";', "store may not import publish"],
  ["ts/token/a.ts", 'import { createApp } from "../app.ts";', "token may not import app"],
  ["ts/webcaster/a.ts", 'import { a } from "../errors.ts";', "webcaster may not import errors"],
  ["ts/webcaster/a.ts", 'import type { A } from "../errors.ts";', "webcaster may not import errors"],
  ["ts/webcaster/a.ts", 'import { a } from "jose";', "webcaster imports no package"],
  ["ts/webcaster/pure/a.ts", 'import { b } from "../b.ts";', "webcaster/pure may not import webcaster"],
  ["ts/webcaster/pure/a.ts", "const now = Date.now();", "the clock comes from clock.ts"],
  ["ts/http/a.ts", 'import { a } from "../webcaster/a.ts";', "http may not import webcaster"],
  ["ts/webcaster/a.ts", 'import { a } from "../broadcast/a.ts";', "webcaster may not import broadcast"],
  ["ts/broadcast/a.ts", 'import { a } from "../errors.ts";', "broadcast may not import errors"],
  ["ts/broadcast/a.ts", 'import type { A } from "../http/openapi.ts";', "broadcast may not import http"],
  ["ts/broadcast/a.ts", 'import { h } from "preact";', "broadcast imports no package"],
  ["ts/broadcast/a.ts", "const now = Date.now();", "the clock comes from clock.ts"],
  ["ts/app.ts", 'import { a } from "./broadcast/a.ts";', "app may not import broadcast"],
  ["ts/dashboard/shell/a.tsx", 'import { a } from "left-pad";', "dashboard imports no package left-pad"],
  [
    "ts/dashboard/shell/a.tsx",
    'import { a } from "../stream/a.tsx";',
    "dashboard/shell may not import dashboard/stream",
  ],
  ["ts/dashboard/parts/a.tsx", 'import { a } from "../shell/a.ts";', "dashboard/parts may not import dashboard/shell"],
  ["ts/dashboard/stream/a.tsx", "const now = Date.now();", "the clock comes from clock.ts"],
  ["ts/dashboard/stream/a.tsx", 'import { a } from "../../errors.ts";', "dashboard may not import errors"],
  ["ts/token/a.ts", "const home = process.env.HOME;", "only config.ts reads process.env"],
  ["ts/token/a.ts", "const now = Date.now();", "the clock comes from clock.ts"],
  ["ts/token/a.ts", 'const { env } = process, home = process["env"];', "only config.ts reads process.env"],
  ["ts/token/a.ts", "const [first] = process.argv;", "only cli reads process.argv"],
  ["ts/token/a.ts", "const started = performance.now();", "must not measure time"],
  ["ts/cli/verbs.ts", 'import { runKeys } from "./keys.ts";', "imports ts/cli/keys.ts for every command"],
  ["ts/http/a.ts", 'import { startMedia } from "../media.ts";', "only ts/media/open.ts loads the media core"],
  ["ts/store/a.mjs", 'import native from "../native/index.js";', "only media imports #native"],
  ["crates/media/src/a.rs", "let now = Instant::now();", "pure code does not name Instant::now"],
  ["crates/rtmp/src/a.rs", "use std::net::TcpStream;", "pure code does not name std::net::Tcp"],
  ["crates/ingest/src/switchboard/hub.rs", "since.elapsed()", "pure code does not name .elapsed()"],
  ["crates/media/src/a.rs", "use mio::net::TcpStream;", "pure code does not name mio::"],
  ["crates/media/src/latest.rs", "SystemTime::now()", "pure code does not name SystemTime::now"],
  [
    "crates/rtmp/src/a.rs",
    "#[cfg(test)]\nmod tests;\n\nfn turn() { Instant::now(); }",
    "pure code does not name Instant::now",
  ],
  ["crates/ingest/src/session/a.rs", "std::thread::spawn(run);", "pure code does not name std::thread"],
  ["crates/ingest/src/session/a.rs", "use std::{fs, fmt};", "pure code does not name std::{fs"],
  ["crates/ingest/src/switchboard/a.rs", "use quinn_udp::Transmit;", "pure code does not name quinn_udp::"],
  ["crates/ingest/src/publish/a.rs", "let at = SystemTime::now();", "pure code does not name SystemTime::now"],
  ["crates/ingest/src/publish/a.rs", "use std::net::{IpAddr, UdpSocket};", "pure code does not name net::{IpAddr, Udp"],
  [
    "crates/rtmp/src/a.rs",
    "fn f() { if cfg!(test) { g(); } }",
    "production code knows of no test, yet names cfg!(test)",
  ],
  [
    "crates/bench/src/a.rs",
    "fn f() {\n    #[cfg(test)]\n    assert!(g());\n}",
    "production code knows of no test, yet names #[cfg(test)]",
  ],
  [
    "crates/ingest/src/reactor/a.rs",
    "struct S { #[cfg(test)] forced: bool }",
    "production code knows of no test, yet names #[cfg(test)]",
  ],
  [
    "crates/peer/src/a.rs",
    "#[cfg(not(test))]\nfn f() {}",
    "production code knows of no test, yet names #[cfg(not(test))]",
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

const ingest = "crates/ingest/src";

/** The violations in a tree that contains only these files. */
function violationsOf(files: Readonly<Record<string, string>>): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), "headgate-boundaries-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const found = violations(root);
  rmSync(root, { recursive: true });
  return found;
}

test("inside ingest every module may import the ones below it, and itself", () => {
  expect(
    violationsOf({
      [`${ingest}/publish/mod.rs`]: "mod registry;\npub(crate) use registry::Registry;",
      [`${ingest}/publish/registry.rs`]: "use std::time::SystemTime;\npub(in crate::publish) struct Registry;",
      [`${ingest}/transcoding/rings.rs`]: "use crate::publish::StreamId;",
      [`${ingest}/session/whip.rs`]: "use crate::{publish::{Registry, StreamId as Id}, session::Effect};",
      [`${ingest}/switchboard/live.rs`]: "use crate::transcoding::Ring;\nfn f(s: &crate::session::Whip) {}",
      [`${ingest}/reactor/poll.rs`]:
        "use std::{net::TcpStream, thread};\nuse crate::{publish::A, session::B, switchboard::C, transcoding::D};",
      [`${ingest}/lib.rs`]: "mod reactor;\nuse reactor::Reactor;\nuse crate::switchboard::Switchboard;",
    }),
  ).toEqual([]);
});

const forbidden: readonly [importer: string, imported: string, text?: string][] = [
  ["publish", "transcoding"],
  ["publish", "session"],
  ["publish", "switchboard"],
  ["publish", "reactor"],
  ["transcoding", "session"],
  ["transcoding", "switchboard"],
  ["transcoding", "reactor"],
  ["session", "transcoding"],
  ["session", "switchboard"],
  ["session", "reactor"],
  ["switchboard", "reactor"],
  ["session", "reactor", "use crate::{publish::StreamId, reactor::{self, Socket}};"],
  ["session", "reactor", "use super::super::reactor::Socket;"],
  ["session", "reactor", "use super::super::{publish, reactor};"],
  ["session", "reactor", "pub(crate) use crate::reactor::Socket;"],
  ["session", "reactor", "fn f(socket: &crate::reactor::Socket) {}"],
  ["session", "reactor", "#[cfg(test)]\nmod tests;\n\nuse crate::reactor;"],
];
for (const [importer, imported, text = `use crate::${imported}::Thing;`] of forbidden) {
  test(`${importer} with ${JSON.stringify(text)} is caught`, () => {
    const path = `${ingest}/${importer}/a.rs`;
    expect(violationsOf({ [path]: text })).toEqual([`${path}: ${importer} may not import ${imported}`]);
  });
}

test("no module imports what lib.rs defines or re-exports", () => {
  const path = `${ingest}/session/a.rs`;
  const complaint = `${path}: session may not import crate::EndReason, which is no module below it`;
  expect(violationsOf({ [path]: "use crate::EndReason;" })).toEqual([complaint]);
  expect(violationsOf({ [path]: "use super::super::EndReason;" })).toEqual([complaint]);
});

test("test code of a module may import any other module, and read clocks", () => {
  const text = "use crate::reactor::Reactor;\nfn t() { Instant::now(); }";
  expect(
    violationsOf({
      [`${ingest}/session/mod.rs`]: `#[cfg(test)]\nuse crate::reactor::Socket;\n#[cfg(test)]\nmod tests { ${text} }`,
      [`${ingest}/session/tests/whip.rs`]: text,
      [`${ingest}/session/whip_tests.rs`]: text,
      [`${ingest}/session/whip.rs`]: 'impl Whip {\n    #[cfg(test)]\n    pub(crate) fn keys(&self) { "}"; }\n}',
      [`${ingest}/session/comment.rs`]: '// use crate::reactor::Socket;\nconst WHY: &str = "crate::reactor::Socket";',
    }),
  ).toEqual([]);
});

test("files of one module that import each other are caught, and the cycle is printed", () => {
  const cycle = (...names: readonly string[]) => {
    const paths = names.map((name) => `${ingest}/switchboard/${name}`);
    return [`${paths[0]}: imports itself: ${[...paths, paths[0]].join(" → ")}`];
  };
  const files = (texts: Readonly<Record<string, string>>) =>
    violationsOf(
      Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${ingest}/switchboard/${name}`, text])),
    );
  expect(files({ "a.rs": "use crate::switchboard::b::B;", "b.rs": "use super::a::A;" })).toEqual(cycle("a.rs", "b.rs"));
  // A re-export leads to the file that has the item.
  expect(
    files({
      "mod.rs": "mod a;\nmod b;\npub(crate) use a::A;\npub(crate) use b::*;",
      "a.rs": "use super::B;\npub(crate) struct A;",
      "b.rs": "use crate::switchboard::A;\npub(crate) struct B;",
    }),
  ).toEqual(cycle("a.rs", "b.rs"));
  expect(files({ "mod.rs": "mod a;\nstruct S(a::A);", "a.rs": "use super::S;" })).toEqual(cycle("a.rs", "mod.rs"));
  expect(files({ "mod.rs": "mod a;\nmod b;\npub(crate) use b::B;", "a.rs": "use super::B;", "b.rs": "" })).toEqual([]);
});

test("once all modules of a crate exist, every file must belong to one", () => {
  const modules = ["publish", "transcoding", "session", "switchboard", "replay", "reactor", "ingest", "sample"];
  const files = Object.fromEntries(modules.map((module) => [`${ingest}/${module}/a.rs`, ""]));
  const complaint = `${ingest}/live.rs: live has no row among the modules of scripts/crate-boundaries.mjs`;
  expect(violationsOf({ ...files, [`${ingest}/lib.rs`]: "", [`${ingest}/live.rs`]: "" })).toEqual([complaint]);
});

test("a crate without module folders is not checked against their rules", () => {
  expect(
    violationsOf({
      [`${ingest}/worker.rs`]: "use crate::live::Live;\nfn f() { if cfg!(test) {} }",
      [`${ingest}/live.rs`]: "use crate::worker::Worker;",
    }),
  ).toEqual([]);
});

test("a cycle of value imports is caught in every file of it", () => {
  const root = mkdtempSync(join(tmpdir(), "headgate-boundaries-"));
  mkdirSync(join(root, "ts/token"), { recursive: true });
  writeFileSync(join(root, "ts/errors.ts"), 'import { a } from "./token/a.ts";');
  writeFileSync(join(root, "ts/token/a.ts"), 'import { b } from "../errors.ts";');
  const complaints = ["ts/errors.ts", "ts/token/a.ts"].map((path) => `${path}: imports itself through other files`);
  expect([...violations(root)].sort()).toEqual(complaints);
  rmSync(root, { recursive: true });
});

test("types may be imported in any direction, and tests may read clocks", () => {
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
