// Checks the rules of which file may import which, and which may read a clock.
// `node scripts/boundaries.mjs [FOLDER]` prints every violation and exits with 1 if there is one.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { crates } from "./crate-boundaries.mjs";

/** Folders of the gateway, the upper ones first: a folder may import the ones below it, and itself. */
const LAYERS = [
  ["cli"],
  ["main"],
  ["handover"],
  ["clock"],
  ["service"],
  ["app"],
  ["http"],
  ["publish", "organisation", "token", "cluster"],
  ["store"],
  ["media"],
];
/** Subfolders of a folder, the upper ones first, "" for its own files: each may import those beside and below it. */
const FOLDERS = {
  publish: [
    ["whip", "monitoring", "timeline", "observers"],
    [
      "",
      "admission",
      "upstreams",
      "preview",
      "capture",
      "running",
      "limits",
      "backup",
      "ending",
      "key",
      "refusals",
      "alerts",
    ],
    ["webhook", "webhook/outbox", "webhook/copies", "bytes"],
    ["addresses"],
  ],
  http: [
    [
      "",
      "whip",
      "v5",
      "pages",
      "monitoring",
      "records",
      "cluster",
      "guide",
      "stream-key",
      "stream-title",
      "token",
      "identity",
      "logo",
      "upstream",
    ],
    ["request"],
  ],
  organisation: [["identity"], ["", "reads", "titles", "logo", "webhook"]],
  store: [["copy"], [""], ["tables", "postgres", "statements", "files"]],
  cli: [["", "serve", "store", "doctor", "webhook", "stream", "token", "asked"]],
  webcaster: [["v5"], [""], ["pure"]],
  dashboard: [
    [""],
    [
      "organisation",
      "webhook",
      "streams",
      "stream",
      "stream/connect",
      "stream/history",
      "stream/links",
      "stream/upstreams",
      "operator",
      "refusals",
      "links",
      "overview",
    ],
    ["stream/timeline", "lists"],
    ["shell"],
    ["parts"],
  ],
};
/** Folders of browser code, and which others each may import. The gateway and these never import each other. */
const IN_BROWSERS = { webcaster: [], broadcast: ["webcaster"], dashboard: ["client", "text"] };
/** The packages that browser code may import; webcaster and broadcast rely on the browser alone. */
const PACKAGES_IN_BROWSERS = {
  dashboard: /^(preact(\/hooks)?|preact-iso\/router|@preact\/signals|openapi-fetch|uplot|mpegts\.js|qr)$/,
};
/** What the routes share; otherwise they do not import each other. */
const FOR_ROUTES =
  /^ts\/http\/((openapi|error-codes|error-answers)\.ts$|whip\/(whip-problems|whip-refusals|problem-page)\.ts$|v5\/v5-(?!socket)|cluster\/(?!node-app)|guide\/(?!\w+-routes)|monitoring\/(?!\w+-routes)|records\/|identity\/addresses\.ts$|request\/)/;
/** What any folder may import; these import each other and what is below http. Cycles are excluded by a check. */
const FREE = new Set([
  "errors",
  "certificate",
  "config",
  "capacity",
  "settings",
  "setting-kinds",
  "api-key-headers",
  "metrics",
  "log",
  "in-time",
  "reason",
  "limits",
  "step-times",
  "tracing",
  "network",
  "own-addresses",
  "listen",
  "core-dumps",
  "node-share",
  "text",
  "client",
]);
/** Files that may measure durations, on a clock that is never set back. */
const STOPWATCHES = new Set([
  "ts/capacity/capacity.ts",
  "ts/http/request/envelope.ts",
  "ts/in-time.ts",
  "ts/log.ts",
  "ts/publish/observers/admission-steps.ts",
  "ts/publish/bytes/pulled-bytes.ts",
  "ts/cluster/membership.ts",
  "ts/handover/predecessor.ts",
  "ts/store/postgres/connecting.ts",
  "ts/publish/addresses/resolver.ts",
  "ts/step-times.ts",
  "ts/publish/webhook/call.ts",
  "ts/publish/webhook/deadline.ts",
  "ts/publish/webhook/exchange.ts",
  "ts/publish/webhook/outbox/turns.ts",
  "ts/publish/updates.ts",
  "ts/publish/webhook/connection-steps.ts",
  "ts/store/portions.ts",
  "ts/token/revocations.ts",
  "ts/webcaster/broadcast.ts",
]);
/** What every command reads before it knows what was requested, so that help and typing mistakes are answered
 *  immediately. */
const READ_FIRST =
  /^ts\/(cli\/(main|verbs|command-flags|words|flags|commit|exit-code)|config|errors|settings|text\/\w+)\.ts$/;
const NO_HONO = new Set(["publish", "organisation", "token", "store", "media"]);

/** Every violation in the tree at `root`, as `path: what`.
 *  @type {(root: string) => readonly string[]} */
export function violations(root) {
  const files = (folder, wanted) =>
    [...filesBelow(join(root, folder), wanted)].map((path) => ({
      name: relative(root, path),
      text: readFileSync(path, "utf8"),
    }));
  return [...gateway(files("ts", /\.m?tsx?$|\.mjs$/)), ...crates(files("crates", /\.rs$|^Cargo\.toml$/))];
}

function* gateway(files) {
  /** Value imports only: file → files. */
  const graph = new Map();
  for (const { name, text: whole } of files) {
    const text = withoutComments(whole);
    const room = roomOf(name);
    const below = [];
    for (const [, target] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*["'`]([^"'`]+)["'`]/g)) {
      // Bun replaces the bare name by its own client, which ignores the connector, so that no address would
      // be checked.
      if (target === "undici") yield `${name}: undici is imported as undici/index.js`;
      if (isNative(target) && room !== "media") yield `${name}: only media imports #native`;
      if (/^(@hono\/|hono(\/|$))/.test(target) && NO_HONO.has(room)) yield `${name}: ${room} may not import Hono`;
      if (room in IN_BROWSERS && !target.startsWith(".") && !PACKAGES_IN_BROWSERS[room]?.test(target))
        yield `${name}: ${room} imports no package${PACKAGES_IN_BROWSERS[room] ? ` ${target}` : ""}`;
      if (!target.startsWith(".") || isNative(target) || target.endsWith(".txt")) continue; // a text is not code
      const file = normalize(join(dirname(name), target));
      const other = roomOf(file);
      const isShape = onlyTypes(text, target) && room in IN_BROWSERS === other in IN_BROWSERS;
      if (!isShape) below.push(file);
      // The CLI and the checks run in a checkout without the built media core and must not load it.
      if (file === "ts/media.ts" && !isShape && name !== "ts/media/open.ts" && !isAwaited(text, target))
        yield `${name}: only ts/media/open.ts loads the media core`;
      if (room === "cli" && READ_FIRST.test(name) && !READ_FIRST.test(file) && !isShape && !isAwaited(text, target))
        yield `${name}: imports ${file} for every command`;
      if (room === other && !isShape && isUpwards(room, name, file))
        yield `${name}: ${folderOf(name)} may not import ${folderOf(file)}`;
      else if (room === "http" && other === "http" && file !== name && !FOR_ROUTES.test(file))
        yield `${name}: http files never import each other`;
      else if (!mayImport(room, other) && !isShape) yield `${name}: ${room} may not import ${other}`;
    }
    graph.set(name, below);
    if (rankOf(room, folderOf(name)) === -1) yield `${name}: ${folderOf(name)} has no row in scripts/boundaries.mjs`;
    yield* ambient(name, text);
  }
  for (const name of graph.keys()) {
    if (reaches(graph, name)) yield `${name}: imports itself through other files`;
  }
}

/** What a file takes from its process instead of from its caller. */
function* ambient(name, text) {
  if (
    /\bprocess\s*(\.|\[")env\b|\benv\b[^;=]*(\bfrom "node:process"|=\s*process\b)/.test(text) &&
    !["ts/config.ts", "ts/handover/inherited.ts"].includes(name)
  ) {
    yield `${name}: only config.ts reads process.env`;
  }
  if (/\bprocess\.argv\b/.test(text) && roomOf(name) !== "cli") yield `${name}: only cli reads process.argv`;
  // Code that customers copy or browsers run gets no clock from a caller; its pure part needs none.
  const isCopied = ["client", "webcaster"].includes(roomOf(name)) && !folderOf(name).endsWith("/pure");
  const hasClock = /^ts\/(dashboard\/shell\/)?clock\.ts$/.test(name) || isCopied;
  if (/\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()/.test(text) && !hasClock) {
    yield `${name}: the clock comes from clock.ts`;
  }
  if (/\bperformance\.now\b|\bhrtime\b/.test(text) && !STOPWATCHES.has(name)) yield `${name}: must not measure time`;
}

const isAwaited = (text, target) => text.includes(`await import("${target}")`);

const isNative = (target) => target === "#native" || /(^|\/)native\//.test(target);

/** `ts/http/stream.ts` → http; `ts/app.ts` → app. */
function roomOf(name) {
  const [, first, second] = name.split("/");
  return second === undefined ? first.replace(/\.m?[tj]sx?$/, "") : first;
}

/** `ts/publish/whip/amf0.ts` → publish/whip; `ts/publish/record.ts` → publish. */
function folderOf(name) {
  return dirname(name).split("/").slice(1).join("/");
}

/** Whether, within a top folder, a subfolder imports one that is above it. */
function isUpwards(room, importer, imported) {
  return rankOf(room, folderOf(importer)) > rankOf(room, folderOf(imported));
}

/** 0 for the uppermost; a folder without subfolders has a single rank. */
function rankOf(room, folder) {
  const inside = folder.slice(room.length + 1);
  const rows = FOLDERS[room];
  return rows === undefined && inside === "" ? 0 : (rows ?? []).findIndex((row) => row.includes(inside));
}

function mayImport(room, other) {
  if (room === other) return true;
  if (room in IN_BROWSERS || other in IN_BROWSERS) return IN_BROWSERS[room]?.includes(other) ?? false;
  if (FREE.has(other)) return true;
  const layer = (name) => LAYERS.findIndex((rooms) => rooms.includes(name));
  if (FREE.has(room)) return layer(other) >= layer("publish");
  return layer(room) !== -1 && layer(room) < layer(other);
}

/** Whether only types are imported, which is allowed in any direction. */
function onlyTypes(text, target) {
  const imports = [...text.matchAll(/\bimport\s+(type\s+)?([^;"]*?)\s+from\s+"([^"]+)"/g)];
  const ours = imports.filter(([, , , from]) => from === target);
  const shape = ([, isType, names]) => isType || /^\{(\s*type\s+\w+(\s+as\s+\w+)?\s*,?)+\s*\}$/.test(names.trim());
  return ours.length > 0 && ours.every(shape);
}

function reaches(graph, start) {
  const seen = new Set();
  const ahead = [...graph.get(start)];
  for (const name of ahead) {
    if (name === start) return true;
    if (!seen.has(name)) ahead.push(...(graph.get(name) ?? []));
    seen.add(name);
  }
  return false;
}

/** Removes comments; a `//` within an address does not start one. */
function withoutComments(text) {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");
}

function* filesBelow(folder, wanted) {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (name === "target" || name === "native") continue;
    if (statSync(path).isDirectory()) yield* filesBelow(path, wanted);
    else if (wanted.test(name)) yield path;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = violations(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), ".."));
  for (const violation of found) console.error(violation);
  process.exit(found.length === 0 ? 0 : 1);
}
