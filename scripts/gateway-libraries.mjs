// `node scripts/gateway-libraries.mjs`: bundles the libraries that the gateway in dist imports, into one file each in
// dist/libraries instead of hundreds, and makes the gateway's own files import those. Opening and reading the many
// files took half of the start-up time. A bundle contains only what is imported of its library; names and lines are
// kept for readable stack traces. The build runs this on the compiler's output; running it again changes nothing.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { rolldown } from "rolldown";
import { parseAst } from "rolldown/parseAst";
import { OTHER_FOLDERS, root } from "./build.mjs";
import { INSTALLED_LIBRARIES } from "./installed-libraries.mjs";

const DIST = join(root, "dist");
const FOLDER = "libraries";
const BUILT = join(DIST, FOLDER);
/** Prefix of a module that lists what is imported of a library. */
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
  // pg tries to load them where they are installed.
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

/** The imports of libraries in a file: positions of their names, and what is imported. */
function importsOf(text) {
  const isLibrary = (name) => !/^([./#]|node:)/.test(name) && !INSTALLED_LIBRARIES.includes(name);
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
  return id.startsWith(ENTRY) ? `\0${id}` : null;
}

function load(id) {
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
