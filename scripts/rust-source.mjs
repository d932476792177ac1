// Rust as text: which part of a file is production code, and where that depends on tests.

/** Items that may be compiled for tests only. Statements, fields and match arms may not: those are branches. */
const TEST_ITEM =
  /^(pub(\s*\([^)]*\))?\s+)?((async|const|unsafe|extern\s*"")\s+)*(mod|use|fn|impl|struct|enum|trait|type|const|static)\b/;

/** Tests may do what production code may not. */
export const isTestFile = (name) => /\/(tests|benches|fuzz)\/|(\/|_)tests?\.rs$/.test(name);

/** `crates/ingest/src/session/whip.rs` → crate `ingest`, path `["session", "whip"]`; null for what is not below src/. */
export function placeOf(name) {
  const [, crate, inside] = /^crates\/([\w-]+)\/src\/(.+)\.rs$/.exec(name) ?? [];
  if (inside === undefined) return null;
  const path = inside.split("/");
  if (path.length === 1 && ["lib", "main"].includes(path[0])) return { crate, path: [] };
  return { crate, path: path.at(-1) === "mod" ? path.slice(0, -1) : path };
}

/** Rust without comments, string contents and test-only items; and each place where the rest depends on whether it
 *  is a test, as the text found there. */
export function productionCode(text) {
  const branches = [];
  let code = withoutCommentsAndStrings(text);
  for (let at = nextTestItem(code, 0); at !== -1; at = nextTestItem(code, at)) {
    const start = code.slice(at).replace(/^(#\[[^\]]*\]\s*)+/, "");
    const isItem = TEST_ITEM.test(start);
    if (!isItem) branches.push("#[cfg(test)]");
    const end = isItem ? endOfItem(code, at) : at + code.slice(at).indexOf("]") + 1;
    code = code.slice(0, at) + code.slice(end);
  }
  branches.push(...(code.match(/\bcfg!\s*\([^)]*\btest\b|#\[cfg\(not\(test\)\)\]/g) ?? []));
  return { code, branches: branches.map((found) => found.replace(/\(test$/, "(test)")) };
}

function nextTestItem(code, from) {
  const at = code.slice(from).search(/#\[cfg\(test\)\]/);
  return at === -1 ? -1 : from + at;
}

function withoutCommentsAndStrings(text) {
  const marks =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|\bb?r(#*)"[\s\S]*?"\1|b?"(?:\\[\s\S]|[^"\\])*"|b?'(?:\\(?:u\{\w+\}|x\w\w|.)|[^'\\\n])'/g;
  return text.replace(marks, (mark) => (/^\/[/*]/.test(mark) ? " " : mark.includes('"') ? '""' : "' '"));
}

/** The position after an item: its `;`, or the brace that closes its first one. */
function endOfItem(code, start) {
  let depth = 0;
  const marks = /[{};]/g;
  marks.lastIndex = start;
  for (let mark = marks.exec(code); mark !== null; mark = marks.exec(code)) {
    if (mark[0] === "{") depth += 1;
    if (mark[0] === "}") depth -= 1;
    if (depth === 0 && mark[0] !== "{") return marks.lastIndex;
  }
  return code.length;
}
