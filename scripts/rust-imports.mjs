// Which paths a Rust file names, and in which file of its crate each of them ends. It only reads text: paths made by
// macros and re-exports of inline modules are not seen.

/** Each path that `code` names from the root of its crate: `{ path, name, isReexport }`. `path` begins below the
 *  crate, `name` is the name of the import in this file. `own` is the path of the file, `children` the names of its
 *  modules. */
export function pathsIn(code, own, children) {
  const found = [];
  const add = (segments, name, isReexport) => {
    const path = fromCrate(segments, own, children);
    if (path !== null) found.push({ path, name, isReexport });
  };
  const rest = code.replace(/\b(pub(?:\s*\([^)]*\))?\s+)?use\s+([^;]+);/g, (_, isPublic, tree) => {
    for (const { segments, alias } of leavesOf(tree)) add(segments, alias ?? segments.at(-1), isPublic !== undefined);
    return "";
  });
  const starts = ["crate", "self", "super", ...children].join("|");
  const inline = new RegExp(`(?<![\\w:.$]|\\bin )\\b(?:${starts})(?:\\s*::\\s*\\w+)+`, "g");
  for (const [text] of rest.matchAll(inline)) add(text.split(/\s*::\s*/), null, false);
  return found;
}

/** Each path of a `use` tree: `a::{b, c as d, self}` contains `a::b`, `a::c` and `a`. */
function leavesOf(tree) {
  const brace = tree.indexOf("{");
  if (brace === -1) {
    const [path, alias = null] = tree.trim().split(/\s+as\s+/);
    const segments = path.split("::").map((segment) => segment.trim());
    if (segments[0] === "") segments.shift();
    return segments.length === 0 ? [] : [{ segments, alias }];
  }
  const before = tree.slice(0, brace).trim().split("::").filter(Boolean);
  return partsOf(tree.slice(brace + 1, tree.lastIndexOf("}")))
    .flatMap(leavesOf)
    .map(({ segments, alias }) => {
      const inside = segments[0] === "self" ? segments.slice(1) : segments;
      return { segments: [...before.map((segment) => segment.trim()), ...inside], alias };
    });
}

/** Splits at the commas outside of inner groups. */
function partsOf(group) {
  const parts = [""];
  let depth = 0;
  for (const letter of group) {
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.filter((part) => part.trim() !== "");
}

/** The segments below the crate's root; null for a path into another crate. */
function fromCrate(segments, own, children) {
  const [first, ...rest] = segments;
  if (first === "crate") return rest;
  if (first === "self") return fromCrate(["crate", ...own, ...rest], own, children);
  if (first === "super") {
    const above = own.slice(0, -1);
    return own.length === 0 ? null : rest[0] === "super" ? fromCrate(rest, above, []) : [...above, ...rest];
  }
  return children.includes(first) ? [...own, ...segments] : null;
}

/** The imports between the files of one crate: file → files. `files` are `{ name, path, code }`. A re-export is
 *  followed to the item and is not an import of its own. */
export function importGraph(files) {
  const byPath = new Map(files.map((file) => [file.path.join("::"), file]));
  const childrenOf = ({ path }) =>
    files
      .filter((file) => file.path.length === path.length + 1 && startsWith(file.path, path))
      .map((f) => f.path.at(-1));
  const uses = new Map(files.map((file) => [file, pathsIn(file.code, file.path, childrenOf(file))]));

  const homeOf = (path, depth = 0) => {
    let at = path.length;
    while (at > 0 && !byPath.has(path.slice(0, at).join("::"))) at -= 1;
    const home = byPath.get(path.slice(0, at).join("::"));
    const item = path[at];
    if (home === undefined || item === undefined || depth > 8) return home;
    const exports = uses.get(home).filter(({ isReexport }) => isReexport);
    const named = exports.find(({ name }) => name === item);
    if (named) return homeOf([...named.path, ...path.slice(at + 1)], depth + 1);
    const globs = exports.filter(({ name }) => name === "*").map((use) => homeOf(use.path.slice(0, -1), depth + 1));
    return globs.find((file) => file && defines(file, item)) ?? home;
  };
  return new Map(
    files.map((file) => {
      const imported = uses.get(file).filter(({ isReexport }) => !isReexport);
      const targets = imported.map(({ path }) => homeOf(path)?.name);
      return [file.name, [...new Set(targets)].filter((name) => name !== undefined && name !== file.name)];
    }),
  );
}

const startsWith = (path, prefix) => prefix.every((segment, at) => path[at] === segment);
const defines = ({ code }, item) =>
  new RegExp(`\\b(struct|enum|union|trait|type|fn|const|static|mod)\\s+${item}\\b`).test(code);

/** One cycle of each group of files that import each other, as the list of its files. */
export function cyclesOf(graph) {
  const cycles = [];
  const named = new Set();
  for (const start of [...graph.keys()].sort()) {
    const cycle = named.has(start) ? null : wayBack(graph, start);
    if (cycle === null) continue;
    for (const name of graph.keys()) {
      if (reaches(graph, start, name) && reaches(graph, name, start)) named.add(name);
    }
    cycles.push(cycle);
  }
  return cycles;
}

const reaches = (graph, from, to) => wayTo(graph, from, to) !== null;
const wayBack = (graph, start) => wayTo(graph, start, start);

/** The shortest path along at least one import, starting with `from`, without `to`. */
function wayTo(graph, from, to) {
  const ways = [[from]];
  const seen = new Set();
  for (const way of ways) {
    for (const next of graph.get(way.at(-1)) ?? []) {
      if (next === to) return way;
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return null;
}
