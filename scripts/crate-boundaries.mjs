// The Rust part of the import rules: which crate and module depends on which, which file uses which library, what pure
// code must not name, and that production code does not depend on tests.
import { cyclesOf, importGraph, pathsIn } from "./rust-imports.mjs";
import { isTestFile, placeOf, productionCode } from "./rust-source.mjs";

/** Which of our crates each crate may depend on. */
const CRATES = {
  aac: [],
  // Measures the encoder; outside the workspace.
  quality: ["aac"],
  media: [],
  transcode: ["aac", "media"],
  rtmp: [],
  whip: ["media"],
  capture: ["media"],
  ingest: ["media", "transcode", "rtmp", "whip", "capture"],
  bridge: ["ingest"],
  bench: ["media", "transcode", "rtmp", "peer"],
  peer: [],
  fuzz: ["aac", "media", "rtmp", "whip", "capture"],
};
/** Two protocols must not depend on each other, not even in tests. */
const STRANGERS = { rtmp: "whip", whip: "rtmp" };

/** Modules inside a crate, by the name of their folder: which other modules each may import, and whether it is pure.
 *  None may import from lib.rs, which is above them all. As long as a crate has none of its folders, no rule
 *  applies. */
const MODULES = {
  ingest: {
    publish: { imports: [], pure: true },
    transcoding: { imports: ["publish"], pure: false },
    session: { imports: ["publish"], pure: true },
    switchboard: { imports: ["publish", "transcoding", "session"], pure: true },
    // Test data.
    sample: { imports: [], pure: true },
    replay: { imports: ["publish", "session"], pure: true },
    reactor: { imports: ["publish", "transcoding", "session", "switchboard"], pure: false },
    ingest: { imports: ["publish", "transcoding", "session", "switchboard", "reactor"], pure: false },
  },
};

/** Pure Rust: time is an argument, and nothing is opened. Pure modules are in the table above. */
const PURE = /^crates\/(aac|media|transcode|rtmp|whip|capture)\/src\//;
const IMPURE =
  /\b(tokio|mio|socket2|quinn_udp)::|\b(?:std::)?net::(Tcp|Udp|ToSocketAddrs)|\bnet::\{[^}]*(Tcp|Udp)|\bos::unix::net\b|\brustls::(Stream|StreamOwned)\b|\bstd::(thread|fs)\b|\bstd::\{[^;]*\b(thread|fs)\b|\bInstant::now\b|\bSystemTime::now\b|\.elapsed\(\)/;
const PURE_CRATES = new Set(["aac", "media", "transcode", "rtmp", "whip", "capture"]);
const IMPURE_CRATES = /^(tokio|mio|socket2|quinn-udp)(-.*)?$/;

/** Libraries that only some files may use, and only their crates may depend on. */
const LIBRARIES = [
  { crate: /^napi/, name: /\bnapi(_derive|_build)?::/, only: /^crates\/bridge\//, homes: ["bridge"], what: "napi" },
  {
    crate: /^rtc(-|$)/,
    name: /\brtc_(?!sdp)\w+::/,
    only: /^crates\/(whip\/src\/transport|peer\/src)\//,
    homes: ["whip", "peer"],
    what: "webrtc-rs",
  },
  {
    crate: /^rtc-sdp$/,
    name: /\brtc_sdp::/,
    only: /^crates\/whip\/src\/sdp\//,
    homes: ["whip"],
    what: "webrtc-rs's SDP parser",
  },
  {
    crate: /^(opus|syom|fdk-aac-sys)$/,
    name: /\buse (::)?opus::|\bopus::(Decoder|Encoder)\b|\b(syom|fdk_aac_sys)::/,
    // The load generator encodes its own media.
    only: /^crates\/(transcode|bench)\//,
    homes: ["transcode", "bench"],
    what: "a codec library",
  },
  {
    crate: /^libc$/,
    name: /\blibc::/,
    only: /^crates\/(ingest\/src\/reactor\/|bench\/src\/relay\/(ring|low_water)\.rs$|quality\/src\/main\.rs$)/,
    homes: ["ingest", "bench", "quality"],
    what: "libc",
  },
];

/** @param {readonly { name: string, text: string }[]} files every Cargo.toml and .rs file below crates/ */
export function* crates(files) {
  const sources = [];
  for (const { name, text } of files) {
    if (name.endsWith("Cargo.toml")) yield* manifest(name, text);
    else if (!isTestFile(name)) sources.push({ name, ...placeOf(name), ...productionCode(text) });
  }
  const laidOut = new Map(Object.entries(MODULES).filter(([crate]) => hasFolders(crate, sources)));
  for (const file of sources) yield* source(file, laidOut.get(file.crate) ?? null);
  for (const [crate, modules] of laidOut)
    yield* together(
      modules,
      sources.filter((file) => file.crate === crate),
    );
}

function hasFolders(crate, sources) {
  const folders = Object.keys(MODULES[crate]).map((module) => `crates/${crate}/src/${module}/`);
  return sources.some(({ name }) => folders.some((folder) => name.startsWith(folder)));
}

function* manifest(name, text) {
  const crate = name.split("/")[1];
  const allowed = CRATES[crate];
  if (allowed === undefined) yield `${name}: ${crate} has no row in scripts/crate-boundaries.mjs`;
  for (const { table, dependency } of dependenciesOf(text)) {
    const other = /^headgate-(\w+)$/.exec(dependency)?.[1];
    const isShipped = !table.includes("dev-dependencies");
    if (other !== undefined && (other === STRANGERS[crate] || (isShipped && !allowed?.includes(other)))) {
      yield `${name}: ${crate} may not depend on ${other}`;
    }
    if (!isShipped) continue;
    if (PURE_CRATES.has(crate) && IMPURE_CRATES.test(dependency))
      yield `${name}: ${crate} is pure, without ${dependency}`;
    const library = LIBRARIES.find((row) => row.crate.test(dependency));
    if (library && !library.homes.includes(crate)) {
      yield `${name}: ${library.what} does not belong here`;
    }
  }
}

/** Each dependency by the name of its package, whatever it is renamed to. */
function* dependenciesOf(toml) {
  let table = "";
  for (const line of toml.split("\n")) {
    const header = /^\[([^\]]+)\]/.exec(line)?.[1];
    if (header !== undefined) {
      table = header;
      const own = /dependencies\.([\w-]+)$/.exec(header)?.[1];
      if (own !== undefined) yield { table, dependency: own };
    } else if (/dependencies$/.test(table)) {
      const key = /^"?([\w-]+)/.exec(line)?.[1];
      if (key !== undefined) yield { table, dependency: /\bpackage\s*=\s*"([^"]+)"/.exec(line)?.[1] ?? key };
    }
  }
}

function* source(file, modules) {
  const { name, crate, code, branches } = file;
  for (const { name: library, only, what } of LIBRARIES) {
    if (library.test(code) && !only.test(name)) yield `${name}: ${what} does not belong here`;
  }
  const row = rowOf(file, modules);
  // Fuzz bodies take the place of the driver, which owns the clock.
  const isPure = (PURE.test(name) && !name.endsWith("/fuzz.rs")) || row?.pure;
  const found = isPure && IMPURE.exec(code);
  if (found) yield `${name}: pure code does not name ${found[0]}`;
  if (row !== null) yield* imports(file, modules);
  if (MODULES[crate] === undefined || modules !== null) {
    for (const branch of new Set(branches)) yield `${name}: production code knows of no test, yet names ${branch}`;
  }
}

function rowOf({ path }, modules) {
  return modules !== null && Object.hasOwn(modules, path[0] ?? "") ? modules[path[0]] : null;
}

/** What a module imports of the other modules, by the first segment of each path. */
function* imports({ name, path: own, code }, modules) {
  const [module] = own;
  const others = new Set(pathsIn(code, own, []).map(({ path }) => path[0]));
  for (const other of others) {
    if (other === module || other === undefined || modules[module].imports.includes(other)) continue;
    yield Object.hasOwn(modules, other)
      ? `${name}: ${module} may not import ${other}`
      : `${name}: ${module} may not import crate::${other}, which is no module below it`;
  }
}

/** Faults that a single file does not show: import cycles between files of one module, each reported once by its
 *  shortest path; and, once all folders exist, files that belong to no module. */
function* together(modules, files) {
  const filesOf = (module) => files.filter(({ path }) => path[0] === module);
  for (const module of Object.keys(modules)) {
    for (const cycle of cyclesOf(importGraph(filesOf(module)))) {
      yield `${cycle[0]}: imports itself: ${[...cycle, cycle[0]].join(" → ")}`;
    }
  }
  if (!Object.keys(modules).every((module) => filesOf(module).length > 0)) return;
  for (const { name, path } of files) {
    const [module] = path;
    if (module !== undefined && !Object.hasOwn(modules, module)) {
      yield `${name}: ${module} has no row among the modules of scripts/crate-boundaries.mjs`;
    }
  }
}
