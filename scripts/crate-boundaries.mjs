// The Rust half of the house's rules: who depends on whom, which file knows which library, what pure code never names.

/** Which of our crates each crate may depend on. */
const CRATES = {
  media: [],
  rtmp: [],
  whip: ["media"],
  ingest: ["media", "rtmp", "whip"],
  bridge: ["ingest"],
  bench: ["media", "rtmp", "whip", "ingest", "peer"],
  peer: [],
  fuzz: ["media", "rtmp", "whip", "ingest"],
};
/** Two protocols never meet, not even in tests. */
const STRANGERS = { rtmp: "whip", whip: "rtmp" };

/** Pure Rust: told the time, opens nothing. */
const PURE =
  /^crates\/(media|rtmp|whip)\/src\/|^crates\/ingest\/src\/(session|hub|queue|gathering|gop|relay|retry|rtmp_clock|rtmp_frames|upstream_url|silence|tracks)\.rs$/;
const IMPURE =
  /\b(tokio|mio|socket2)::|\b(?:std::)?net::(Tcp|Udp|ToSocketAddrs)|\bnet::\{[^}]*(Tcp|Udp)|\bInstant::now\b|\bSystemTime::now\b|\.elapsed\(\)/;
const PURE_CRATES = new Set(["media", "rtmp", "whip"]);
const IMPURE_CRATES = /^(tokio|mio|socket2|quinn-udp)(-.*)?$/;

/** Libraries that only some files may name, and only their crates depend on. */
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
    crate: /^(opus|libxaac-sys|syom|fdk-aac-sys)$/,
    name: /\buse (::)?opus::|\bopus::(Decoder|Encoder)\b|\b(libxaac_sys|syom|fdk_aac_sys)::/,
    // The load generator encodes what it sends.
    only: /^crates\/(media\/src\/transcode(\/\w+)?\.rs$|bench\/)/,
    homes: ["media", "bench"],
    what: "a codec library",
  },
  {
    crate: /^libc$/,
    name: /\blibc::/,
    only: /^crates\/(media\/src\/transcode\/xaac|ingest\/src\/link)\.rs$/,
    homes: ["media", "ingest"],
    what: "libc",
  },
];

/** @param {readonly { name: string, text: string }[]} files every Cargo.toml and .rs file below crates/ */
export function* crates(files) {
  for (const { name, text } of files) {
    if (name.endsWith("Cargo.toml")) yield* manifest(name, text);
    else if (!/\/(tests|benches|fuzz)\/|(\/|_)tests?\.rs$/.test(name)) yield* source(name, withoutTests(text));
  }
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

function* source(name, code) {
  for (const { name: library, only, what } of LIBRARIES) {
    if (library.test(code) && !only.test(name)) yield `${name}: ${what} does not belong here`;
  }
  // Fuzz bodies stand in for the driver, which owns the clock.
  const found = PURE.test(name) && !name.endsWith("/fuzz.rs") && IMPURE.exec(code);
  if (found) yield `${name}: pure code does not name ${found[0]}`;
}

/** Rust without comments and without what is compiled for tests only. */
function withoutTests(text) {
  let code = text.replace(/(^|\s)\/\/.*$/gm, "$1").replace(/\/\*[\s\S]*?\*\//g, "");
  for (;;) {
    const start = code.search(/#\[cfg\(test\)\]/);
    if (start === -1) return code;
    code = code.slice(0, start) + code.slice(endOfItem(code, start));
  }
}

/** The place behind an item: its `;`, or the brace that closes its first one. Strings do not count. */
function endOfItem(code, start) {
  let depth = 0;
  const marks = /"(?:\\[\s\S]|[^"\\])*"|'(?:\\.|[^'\\])'|[{};]/g;
  marks.lastIndex = start;
  for (let mark = marks.exec(code); mark !== null; mark = marks.exec(code)) {
    if (mark[0] === "{") depth += 1;
    if (mark[0] === "}") depth -= 1;
    if (depth === 0 && (mark[0] === ";" || mark[0] === "}")) return marks.lastIndex;
  }
  return code.length;
}
