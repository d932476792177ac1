// The small faults that scripts/mutants.mjs puts into TypeScript: one change of one line each, all of them textual.

/** Where the gateway's rules are. */
export const FOLDERS = ["ts/publish", "ts/token", "ts/organisation"];

/** [what a line must hold, what takes its place]; each occurrence is a fault of its own. */
const REPLACEMENTS = [
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ <= /g, " < "],
  [/ >= /g, " > "],
  [/ < /g, " <= "],
  [/ > /g, " >= "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ \?\? /g, " && "],
  [/ \+ 1\b/g, " - 1"],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/(?<=\()!(?=[a-z])/g, ""],
  [/(?<=\breturn )[^;]+(?=;$)/g, "undefined"],
  [/(?<=^const [A-Z_]+ = )[\d_]+(?=;$)/g, "3"],
];
/** A statement of one line that is a call or an assignment, and is left out. */
const STATEMENT = /^\s+(?:await |void )?\w[\w.?#[\]]*(?:\(.*\)| [-+|?&]?[|?&]?= .*);$/;
/** What no test is to look for: words of the log, types, imports, comments. */
const SPARED = /^\s*(?:\/\/|\/?\*|import |export (?:type|interface) |type |readonly |\||.*\blog\.|.*=> void|throw )/;
const DECLARES = /^\s*(?:const|let) /;

/** Every fault of a file: where, what was there, what takes its place, and the function that puts it in. */
export function faultsIn(file, text) {
  const lines = text.split("\n");
  let depthOfType = 0;
  return lines.flatMap((line, index) => {
    // Within an interface or an object type nothing runs.
    if (depthOfType > 0 || /^(?:export )?(?:interface|type) .*\{$/.test(line)) {
      depthOfType += (line.match(/\{/g) ?? []).length - (line.match(/\}/g) ?? []).length;
      return [];
    }
    if (SPARED.test(line)) return [];
    const found = REPLACEMENTS.flatMap(([what, is]) =>
      [...line.matchAll(what)]
        .filter(({ 0: was }) => was.trim() !== is)
        .map((match) => ({
          at: match.index,
          was: match[0].trim(),
          is: is.trim(),
          line: line.slice(0, match.index) + is + line.slice(match.index + match[0].length),
        })),
    );
    if (STATEMENT.test(line) && !DECLARES.test(line)) found.push({ at: 0, was: line.trim(), is: "", line: "" });
    return found.map(({ was, is, line: mutated }) => ({
      file,
      line: index + 1,
      was,
      is: is === "" ? "(left out)" : is,
      apply: (whole) => whole.split("\n").with(index, mutated).join("\n"),
    }));
  });
}

/** The same faults in the same order for the same code, mixed: by a hash of what each of them is. */
export function inFixedOrder(faults) {
  const keyed = faults.map((fault) => ({ fault, key: hash(`${fault.file} ${fault.line} ${fault.was} ${fault.is}`) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ fault }) => fault);
}

/** FNV-1a, 32 bits, mixed once more so that near texts are far apart. */
function hash(text) {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
