// `node scripts/gateway-libraries.mjs`: the libraries that the gateway in dist imports, one file for each instead of
// hundreds, in dist/libraries; the gateway's own files import them from there. Opening and reading the many files was half
// of what a start took. What is imported of a library is in its file, and nothing else; names and lines stay, for whoever
// reads a stack. The build runs it on what the compiler wrote; where that was done already it finds nothing to do.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { rolldown } from "rolldown";
import { parseAst } from "rolldown/parseAst";
import { OTHER_FOLDERS, root } from "./build.mjs";
import { INSTALLED_LIBRARIES } from "./installed-libraries.mjs";

const DIST = join(root, "dist");
const FOLDER = "libraries";
const BUILT = join(DIST, FOLDER);
/** What is imported where, of a library's name. */
const ENTRY = "entry:";

const files = readdirSync(DIST, { recursive: true })
  .filter((path) => path.endsWith(".js") && ![FOLDER, ...OTHER_FOLDERS].includes(path.split("/")[0]))
  .map((path) => join(DIST, path))
  .map((path) => ({ path, text: readFileSync(path, "utf8") }))
  .map((file) => ({ ...file, imports: importsOf(file.text) }))
  .filter(({ imports }) => imports.length > 0);
const wanted = new Map();
for (const { library, names } of files.flatMap(({ imports }) => imports)) {
  wanted.set(library, new Set([...(wanted.get(library) ?? []), ...names]));
}

if (files.length === 0) process.exit();
const bundle = await rolldown({
  input: Object.fromEntries([...wanted.keys()].map((library) => [fileOf(library), `${ENTRY}${library}`])),
  cwd: root,
  platform: "node",
  // pg asks for them where they are installed.
  external: [...INSTALLED_LIBRARIES, "pg-native", "pg-cloudflare"],
  plugins: [{ name: "entries", resolveId, load }],
  logLevel: "warn",
});
const minify = { compress: true, mangle: false, codegen: { removeWhitespace: false } };
await bundle.write({
  dir: BUILT,
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "shared-[hash].js",
  minify,
});
await bundle.close();
for (const file of files) writeFileSync(file.path, rewritten(file));

/** The imports of libraries in a file: where their names stand, and what is taken of them. */
function importsOf(text) {
  const isLibrary = (name) => !/^([./#]|node:)/.test(name) && !INSTALLED_LIBRARIES.includes(name);
  const imports = parseAst(text).body.filter(({ source }) => source && isLibrary(source.value));
  return imports.map(({ type, specifiers, source: { value, start, end } }) => {
    const names = (specifiers ?? []).map(({ type: kind, imported }) => {
      if (kind === "ImportDefaultSpecifier") return "default";
      return kind === "ImportSpecifier" ? imported.name : null;
    });
    if (type !== "ImportDeclaration" || names.includes(null)) throw new Error(`take ${value} by names`);
    return { library: value, names, start, end };
  });
}

function resolveId(id) {
  return id.startsWith(ENTRY) ? `\0${id}` : null;
}

function load(id) {
  if (!id.startsWith(`\0${ENTRY}`)) return null;
  const library = id.slice(ENTRY.length + 1);
  return `export { ${[...wanted.get(library)].join(", ")} } from ${JSON.stringify(library)};`;
}

/** Without its ending. */
function fileOf(library) {
  return library.replace(/^@|\.js$/g, "").replaceAll(/[/.]/g, "-");
}

/** The file, with libraries imported from where they are now. */
function rewritten({ path, text, imports }) {
  return imports.reduceRight((result, { library, start, end }) => {
    const way = relative(dirname(path), join(BUILT, `${fileOf(library)}.js`));
    return `${result.slice(0, start)}${JSON.stringify(way.startsWith(".") ? way : `./${way}`)}${result.slice(end)}`;
  }, text);
}
