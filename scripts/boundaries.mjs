// Who may import whom, and who may read a clock: the rules of the house, checked.
// `node scripts/boundaries.mjs [FOLDER]` prints every violation and exits with 1 when there is one.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Rooms of the gateway, the upper ones first: a room may import rooms below it, and itself. */
const LAYERS = [["cli"], ["main"], ["app"], ["http"], ["publish", "organisation", "token"], ["store"], ["media"]];
/** What any room may import: they import nothing but each other. */
const FREE = new Set(["errors", "config", "settings", "request", "metrics", "log", "listen"]);
/** Which of our crates each crate may depend on. */
const CRATES = {
  media: [],
  rtmp: [],
  whip: ["media"],
  ingest: ["media", "rtmp", "whip"],
  bridge: ["ingest"],
  bench: ["media", "rtmp", "whip", "ingest"],
};
/** Pure Rust: told the time, opens nothing. */
const PURE =
  /^crates\/(media|rtmp|whip)\/src\/|^crates\/ingest\/src\/(session|hub|queue|gop|relay|retry|rtmp_clock|rtmp_frames|upstream_url)\.rs$/;
const IMPURE =
  /\btokio\b|\bstd::net::(Tcp|Udp)|\bnet::\{[^}]*(Tcp|Udp)|\bInstant::now\b|\bSystemTime::now\b|\.elapsed\(\)/;
/** Libraries that only some files may name. */
const LIBRARIES = [
  { name: /\bnapi(_derive)?::/, only: /^crates\/bridge\//, what: "napi" },
  { name: /\brtc_(?!sdp)\w+::/, only: /^crates\/whip\/src\/transport\//, what: "webrtc-rs" },
  { name: /\brtc_sdp::/, only: /^crates\/whip\/src\/sdp\//, what: "webrtc-rs's SDP parser" },
  { name: /\b(opus|libxaac_sys)::/, only: /^crates\/media\/src\/transcode(_\w+)?\.rs$/, what: "a codec library" },
];

/** Every violation in the tree at `root`, as `path: what`. */
export function violations(root) {
  return [...gateway(root), ...crates(root)];
}

function* gateway(root) {
  for (const path of filesBelow(join(root, "ts"), /\.ts$/)) {
    const name = relative(root, path);
    const text = readFileSync(path, "utf8");
    const room = roomOf(name);
    for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
      if (target === "#native" && name !== "ts/media.ts") yield `${name}: only ts/media.ts imports #native`;
      if (/^(@hono\/|hono)/.test(target) && ["publish", "organisation", "token", "store"].includes(room)) {
        yield `${name}: ${room} knows no Hono`;
      }
      if (!target.startsWith(".")) continue;
      const file = normalize(join(dirname(name), target));
      const other = roomOf(file);
      if (room === "http" && other === "http" && file !== name) yield `${name}: http files never import each other`;
      else if (!mayImport(room, other) && !onlyTypes(text, target)) yield `${name}: ${room} may not import ${other}`;
    }
    if (/\bprocess\.env\b/.test(text) && name !== "ts/config.ts") yield `${name}: only config.ts reads process.env`;
    if (/\bDate\.now\b|\bnew Date\(\)/.test(text) && name !== "ts/main.ts")
      yield `${name}: the clock is made in main.ts`;
  }
}

/** `ts/http/stream.ts` → http; `ts/app.ts` → app. */
function roomOf(name) {
  const [, first, second] = name.split("/");
  return second === undefined ? first.replace(/\.ts$/, "") : first;
}

function mayImport(room, other) {
  if (room === other) return true;
  const layer = (name) => LAYERS.findIndex((rooms) => rooms.includes(name));
  if (FREE.has(other)) return true;
  if (FREE.has(room)) return layer(other) >= layer("publish");
  return layer(room) !== -1 && layer(room) < layer(other);
}

/** Shapes may be named in any direction. */
function onlyTypes(text, target) {
  const imports = [...text.matchAll(/import\s+(type\s+)?([^;]*?)\s+from\s+"([^"]+)"/g)];
  const ours = imports.filter(([, , , from]) => from === target);
  return (
    ours.length > 0 && ours.every(([, isType, names]) => isType || /^\{(\s*type\s+\w+\s*,?)+\}$/.test(names.trim()))
  );
}

function* crates(root) {
  for (const [crate, allowed] of Object.entries(CRATES)) {
    const manifest = join(root, "crates", crate, "Cargo.toml");
    if (!existsSync(manifest)) continue;
    const [dependencies] = readFileSync(manifest, "utf8").split(/^\[(?:dev|build)-dependencies\]/m);
    for (const [, other] of dependencies.matchAll(/^headgate-(\w+)/gm)) {
      if (!allowed.includes(other)) yield `crates/${crate}/Cargo.toml: ${crate} may not depend on ${other}`;
    }
  }
  for (const path of filesBelow(join(root, "crates"), /\.rs$/)) {
    const name = relative(root, path);
    if (/\/(tests|target|fuzz)\/|tests?\.rs$/.test(name)) continue;
    const code = withoutTests(readFileSync(path, "utf8"));
    for (const { name: library, only, what } of LIBRARIES) {
      if (library.test(code) && !only.test(name)) yield `${name}: ${what} does not belong here`;
    }
    const found = PURE.test(name) && !name.endsWith("/fuzz.rs") && IMPURE.exec(code);
    if (found) yield `${name}: pure code does not name ${found[0]}`;
  }
}

/** Rust without comments and without what follows `#[cfg(test)] mod`. */
function withoutTests(text) {
  return text.replace(/^\s*\/\/.*$/gm, "").replace(/#\[cfg\(test\)\]\s*(#\[[^\]]*\]\s*)*mod [\s\S]*$/, "");
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
