// The names in a package by which an installer, or Node at run time, would look for something that is not in it: on a
// registry, or in a folder above. Whoever owns such a name decides what runs.
import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, join } from "node:path";

/** Fields of package.json that installers act on. */
const FIELDS = [
  "dependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "bundledDependencies",
  "devDependencies",
  "overrides",
  "scripts",
];
/** Files with which an installer would look further than package.json. */
const INSTRUCTIONS =
  /^(\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.cjs|binding\.gyp|.*-lock\.(json|yaml)|npm-shrinkwrap\.json|yarn\.lock)$/;
const BUILTIN = new Set(builtinModules);
/** What may load a module by a name: only files with a strange one are parsed, which takes a second per megabyte. */
const MAY_LOAD = /(?:\bimport|\bfrom|require(?:\.resolve)?|createRequire\([^()]*\))\s*\(?\s*["'`]([^"'`\n]*)["'`]/g;
/** Functions that load a module by name: bundlers call Node's by another name. */
const LOADERS = ["require", "__require"];

/** Every such name in a package's folder, as `file: what`.
 *  @param {string} folder
 *  @returns {Promise<string[]>} */
export async function faultsOfNames(folder) {
  const { parseAst } = await import("rolldown/parseAst"); // installed by the build
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return files.flatMap((path) => {
    if (INSTRUCTIONS.test(basename(path))) return [`${path}: tells an installer more than package.json`];
    const text = () => readFileSync(join(folder, path), "utf8");
    if (basename(path) === "package.json") {
      const manifest = JSON.parse(text());
      return FIELDS.filter((field) => field in manifest).map((field) => `${path}: has ${field}`);
    }
    if (!/\.m?js$/.test(path)) return [];
    if ([...text().matchAll(MAY_LOAD)].every(([, name]) => isOwn(name))) return [];
    return importsOf(parseAst(text()))
      .filter((name) => !isOwn(name))
      .map((name) => `${path}: loads ${name}`);
  });
}

/** Part of the package, or of Node. */
const isOwn = (name) => /^([./#]|node:)/.test(name) || BUILTIN.has(name);

/** The constant names of modules that a program loads, wherever in it. */
function importsOf(program) {
  const found = [];
  const visit = (node) => {
    if (node === null || typeof node !== "object") return;
    if (Array.isArray(node)) return node.forEach(visit);
    const source = node.type === "CallExpression" && isLoader(node.callee) ? node.arguments[0] : node.source;
    if (source?.type === "Literal" && typeof source.value === "string") found.push(source.value);
    Object.values(node).forEach(visit);
  };
  visit(program);
  return found;
}

/** `require`, `require.resolve`, and what `createRequire(…)` returns when it is called at once. */
function isLoader(callee) {
  if (callee.type === "Identifier") return LOADERS.includes(callee.name);
  if (callee.type === "MemberExpression") return isLoader(callee.object) && callee.property.name === "resolve";
  return callee.type === "CallExpression" && callee.callee.name === "createRequire";
}
