// `node scripts/client-package.mjs [FOLDER]`: packs the typed client and the webhook receiver as the npm package
// headgate-client, for users of the API. Prints the path of the .tgz that it made in FOLDER (default: .build).
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { root, run } from "./build.mjs";

const NAME = "headgate-client";
const LIBRARY = "openapi-fetch";
const HELPERS = "openapi-typescript-helpers";
const README = `# ${NAME}

The typed client of Headgate's management API, and the receiver of its webhook, for Node 20 and newer, Deno, Bun and
Workers.

\`\`\`ts
import { answerOf, createHeadgateClient, everyOf } from "${NAME}";
import { verify } from "${NAME}/webhook";

const headgate = createHeadgateClient({ baseUrl: "https://headgate.example", apiKey: process.env.KEY! });
const stream = await answerOf(headgate.POST("/stream", { body: { tags: ["studio-1"] } }));
for await (const { id, state } of everyOf((page) => headgate.GET("/stream", { params: { query: page } }))) {
  console.log(id, state);
}

// In the handler of your webhook:
const event = await verify(request.headers, await request.arrayBuffer(), "whsec_…");
\`\`\`

\`answerOf\` throws a \`HeadgateError\` with \`kind\`, \`status\`, \`code\`, \`field\`, \`userinfo\` and \`requestId\`; ask by
\`isHeadgateError(error, "unknown_stream")\`. A request that gets no answer, or 429 or 503, is sent again twice (\`retries\`); a POST carries an \`Idempotency-Key\`, so that it is done once.
`;

/** Makes the package in `folder` and returns the path of its .tgz.
 *  @type {(folder: string) => string} */
export function packClient(folder) {
  const sources = join(root, "ts", "client");
  const built = join(folder, NAME);
  rmSync(built, { recursive: true, force: true });
  mkdirSync(built, { recursive: true });
  // The declarations must be complete both without DOM types and without Node types.
  const language = ["--target", "es2023", "--module", "nodenext", "--strict", "--exactOptionalPropertyTypes"];
  const libraries = ["--lib", "es2023,dom,dom.iterable", "--rewriteRelativeImportExtensions"];
  const out = ["--ignoreConfig", "--declaration", "--rootDir", sources, "--outDir", built];
  const files = ["index.ts", "webhook.ts"].map((name) => join(sources, name));
  run(process.execPath, [join("node_modules", "ts7", "bin", "tsc"), ...language, ...libraries, ...out, ...files]);
  copyFileSync(join(sources, "paths.d.ts"), join(built, "paths.d.ts"));
  bringLibrary(built);
  writeFileSync(join(built, "README.md"), README);
  writeFileSync(join(built, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  return pack([built], folder)[0];
}

/** Puts the library of the client, and the types that it needs, into the package: it is then installed without a
 *  registry, and depends on nobody else's names. */
function bringLibrary(built) {
  const folder = join(built, LIBRARY);
  const installed = join(root, "node_modules");
  mkdirSync(folder);
  const take = (from, to, change = (text) => text) => {
    const text = readFileSync(join(installed, from), "utf8").replace(/^\/\/# sourceMappingURL=.*$/m, "");
    writeFileSync(join(folder, to), change(text));
  };
  take(`${LIBRARY}/dist/index.mjs`, "index.js");
  take(`${LIBRARY}/dist/index.d.mts`, "index.d.ts", (text) => text.replace(`'${HELPERS}'`, "'./helpers.js'"));
  take(`${HELPERS}/dist/index.d.mts`, "helpers.d.ts");
  take(`${LIBRARY}/LICENSE`, "LICENSE");
  for (const name of ["index.js", "index.d.ts"]) {
    const path = join(built, name);
    writeFileSync(path, readFileSync(path, "utf8").replace(`"${LIBRARY}"`, `"./${LIBRARY}/index.js"`));
  }
}

/** Runs `npm pack`, which contacts no registry. Returns the paths of the .tgz files.
 *  @type {(packageFolders: readonly string[], into: string) => string[]} */
export function pack(packageFolders, into) {
  const folders = packageFolders.map((folder) => resolve(folder));
  const words = ["pack", ...folders, "--pack-destination", into, "--ignore-scripts", "--silent"];
  const { status, stdout } = spawnSync("npm", words, { encoding: "utf8", stdio: ["ignore", "pipe", 2] });
  if (status !== 0) throw new Error(`npm pack ${folders.join(" ")} failed`);
  return stdout
    .trim()
    .split("\n")
    .map((name) => join(into, name));
}

function manifest() {
  const { version, license, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entry = (name) => ({ types: `./${name}.d.ts`, default: `./${name}.js` });
  return {
    name: NAME,
    version,
    description: "Typed client of Headgate's management API, and the receiver of its webhook",
    license,
    type: "module",
    sideEffects: false,
    exports: { ".": entry("index"), "./webhook": entry("webhook"), "./package.json": "./package.json" },
    types: "./index.d.ts",
    files: ["*.js", "*.d.ts", LIBRARY],
    engines: { node: engines.node },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(packClient(resolve(process.argv[2] ?? join(root, ".build"))));
}
