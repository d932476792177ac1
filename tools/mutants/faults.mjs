// The small faults that tools/mutants.mjs puts into TypeScript: one textual change of one line each.

/** One change of one line.
 *  @typedef {{
 *    readonly file: string;
 *    readonly line: number;
 *    readonly was: string;
 *    readonly is: string;
 *    apply(whole: string): string;
 *  }} Fault */

/** Where the gateway's rules are.
 *  @type {readonly string[]} */
export const FOLDERS = ["ts/publish", "ts/token", "ts/organisation"];

/** [what a line must contain, its replacement]; each occurrence is a fault of its own. */
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
/** A one-line statement that is a call or an assignment, which can be left out. */
const STATEMENT = /^\s+(?:await |void )?\w[\w.?#[\]]*(?:\(.*\)| [-+|?&]?[|?&]?= .*);$/;
/** What tests need not detect: log texts, types, imports, comments. */
const SPARED = /^\s*(?:\/\/|\/?\*|import |export (?:type|interface) |type |readonly |\||.*\blog\.|.*=> void|throw )/;
const DECLARES = /^\s*(?:const|let) /;

/** Every fault of a file: its place, the old and the new text, and a function that applies it.
 *  @type {(file: string, text: string) => Fault[]} */
export function faultsIn(file, text) {
  const lines = text.split("\n");
  let depthOfType = 0;
  return lines.flatMap((line, index) => {
    // Nothing runs within an interface or an object type.
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

/** The faults in a shuffled order that is the same for the same code: by a hash of each fault.
 *  @type {(faults: readonly Fault[]) => Fault[]} */
export function inFixedOrder(faults) {
  const keyed = faults.map((fault) => ({ fault, key: hash(`${fault.file} ${fault.line} ${fault.was} ${fault.is}`) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ fault }) => fault);
}

/** FNV-1a, 32 bits, mixed once more so that similar texts are far apart. */
function hash(text) {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
