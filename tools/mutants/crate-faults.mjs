// The small faults that `npm run mutants -- crates` puts into the protocol crates: one textual change of one line each.

/** Where bytes become frames and commands. [folder of the crate, package, files to leave out] */
export const CRATES = [
  ["crates/media", "headgate-media", /\/fuzz/],
  ["crates/rtmp", "headgate-rtmp", /\/fuzz/],
  ["crates/whip", "headgate-whip", /\/(fuzz|transport\/(dtls|srtp|record_nonce|p224))/],
];

/** [what a line must contain, its replacement]; each occurrence is a fault of its own. */
const REPLACEMENTS = [
  [/ == /g, " != "],
  [/ != /g, " == "],
  [/ <= /g, " < "],
  [/ >= /g, " > "],
  [/ < /g, " <= "],
  [/ > /g, " >= "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ \+ 1\b/g, " + 2"],
  [/ - 1\b/g, " - 0"],
  [/ << /g, " >> "],
  [/ >> /g, " << "],
  [/ & (?=0x|\d)/g, " | "],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/(?<=\bif )!(?=[a-z])/g, ""],
];
/** Lines that do not run, or that only the compiler reads. */
const SPARED =
  /^\s*(\/\/|#\[|use |pub use |where |impl|type |pub type |const fn|debug_assert|tracing::)|<[A-Z]\w*>|->|=>.*\|.*=>/;
const TESTS = /^#\[cfg\(test\)\]\nmod \w+ \{/m;

/** Every fault of a file: its place, the old and the new text, and a function that applies it. */
export function crateFaultsIn(file, text) {
  const tested = text.search(TESTS);
  const own = tested < 0 ? text : text.slice(0, tested);
  return own.split("\n").flatMap((line, index) => {
    if (SPARED.test(line)) return [];
    const code = line.replace(/\s\/\/.*$/, "");
    return REPLACEMENTS.flatMap(([what, is]) =>
      [...code.matchAll(what)].map((match) => {
        const mutated = line.slice(0, match.index) + is + line.slice(match.index + match[0].length);
        const apply = (whole) => whole.split("\n").with(index, mutated).join("\n");
        return { file, line: index + 1, was: match[0].trim(), is: is.trim() || "(left out)", apply };
      }),
    );
  });
}
