// `node scripts/gateway-libraries.mjs`: bundles the libraries that the gateway in dist imports, into one file each in
// dist/libraries instead of hundreds, and makes the gateway's own files import those. Opening and reading the many
// files took half of the start-up time. A bundle contains only what is imported of its library; names and lines are
// kept for readable stack traces. Native parts of libraries are copied beside their bundles, and the files of the page
// /docs into dist/swagger-ui: nothing is loaded from node_modules at run time. The build runs this on the compiler's
// output; running it again changes nothing.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { rolldown } from "rolldown";
import { parseAst } from "rolldown/parseAst";
import { provideAddons } from "../tools/release/addons.mjs";
import { ownTarget } from "../tools/release/targets.mjs";
import { OTHER_FOLDERS, root } from "./build.mjs";
import { copyAddons, copyPageFiles } from "./library-files.mjs";

const DIST = join(root, "dist");
const FOLDER = "libraries";
const BUILT = join(DIST, FOLDER);
/** Prefix of a module that lists what is imported of a library. */
const ENTRY = "entry:";
/** Prefix of a module that takes the place of a library's own. */
const REPLACED = "replaced:";
/** Faster or other implementations that a library tries to load, from wherever Node finds the name. None is used. */
const ABSENT = ["bufferutil", "pg-cloudflare", "pg-native", "utf-8-validate"];
const NOT_FOUND = '{ code: "MODULE_NOT_FOUND" }';
/** Modules that would search node_modules for an addon. */
const REPLACEMENTS = new Map([
  ["@node-rs/argon2", addonOf("argon2", "export const { hash, verify } = load();")],
  ["@neon-rs/load", addonOf("libsql", "export { load };")],
  ["detect-libc", "export {};"],
  ...ABSENT.map((name) => [name, `throw Object.assign(new Error("${name} is not used"), ${NOT_FOUND});`]),
]);

const files = readdirSync(DIST, { recursive: true })
  .filter((path) => /\.m?js$/.test(path) && ![FOLDER, ...OTHER_FOLDERS].includes(path.split("/")[0]))
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
  // With the first, libsql loads its addon by the replaced module alone, and not by the name of a package.
  transform: { define: { "process.env.LIBSQL_JS_DEV": "true", __dirname: "import.meta.dirname" } },
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
const own = ownTarget();
copyAddons(provideAddons(own), own, BUILT);
copyPageFiles(join(DIST, "swagger-ui"));

/** A module that loads the addon beside the bundle, wherever that is. */
function addonOf(library, exported) {
  const load = `const load = () => createRequire(import.meta.url)("./${library}.node");`;
  return `import { createRequire } from "node:module";\n${load}\n${exported}`;
}

/** The imports of libraries in a file: positions of their names, and what is imported. */
function importsOf(text) {
  const isLibrary = (name) => !/^([./#]|node:)/.test(name);
  const imports = parseAst(text).body.filter(({ source }) => source && isLibrary(source.value));
  return imports.map(({ type, specifiers, source: { value, start, end } }) => {
    const names = (specifiers ?? []).map(({ type: kind, imported }) => {
      if (kind === "ImportDefaultSpecifier") return "default";
      return kind === "ImportSpecifier" ? imported.name : null;
    });
    if (type !== "ImportDeclaration" || names.includes(null)) throw new Error(`import ${value} by names`);
    return { library: value, names, start, end };
  });
}

function resolveId(id) {
  if (REPLACEMENTS.has(id)) return `\0${REPLACED}${id}`;
  return id.startsWith(ENTRY) ? `\0${id}` : null;
}

function load(id) {
  if (id.startsWith(`\0${REPLACED}`)) return REPLACEMENTS.get(id.slice(REPLACED.length + 1));
  if (!id.startsWith(`\0${ENTRY}`)) return null;
  const library = id.slice(ENTRY.length + 1);
  return `export { ${[...wanted.get(library)].join(", ")} } from ${JSON.stringify(library)};`;
}

/** File name without extension. */
function fileOf(library) {
  return library.replace(/^@|\.js$/g, "").replaceAll(/[/.]/g, "-");
}

/** The file with its libraries imported from their bundles. */
function rewritten({ path, text, imports }) {
  return imports.reduceRight((result, { library, start, end }) => {
    const way = relative(dirname(path), join(BUILT, `${fileOf(library)}.js`));
    return `${result.slice(0, start)}${JSON.stringify(way.startsWith(".") ? way : `./${way}`)}${result.slice(end)}`;
  }, text);
}
