// `node scripts/webcaster-package.mjs [FOLDER]`: packs the browser client as the npm package headgate-webcaster:
// bundles, declarations, README. Prints the path of the .tgz that it made in FOLDER (default: .build). With `--bundles
// FOLDER` it only makes the bundles, as the build puts them into dist/sdk, where /sdk/ serves them.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { root, run } from "./build.mjs";
import { pack } from "./client-package.mjs";

const NAME = "headgate-webcaster";
/** What the script exports on `window`, and the name that pages of deployed v6 clients use. */
const GLOBAL = "HeadgateWebcaster";
const FORMER_GLOBAL = "WebcasterApiV6";
/** Browsers of 2022 and later. */
const TARGET = "es2022";
/** Names of the two bundles: a module, and a script for pages without modules. */
const MODULE = "webcaster.mjs";
const SCRIPT = "webcaster.js";
/** The v5 API, for pages that still call it. */
const V5_MODULE = "rtcuser.mjs";
const V5_SCRIPT = "rtcuser.js";
const V5_GLOBAL = "HeadgateRtcUser";
const README = `# ${NAME}

Broadcast from a browser to Headgate: preview, devices, screen, mute, quality, reconnect, metrics. No dependencies.

\`\`\`ts
import { Webcaster } from "${NAME}";

const webcaster = new Webcaster({
  serverUrl: "https://headgate.example",
  auth: { token: async () => (await fetch("/my-backend/web-token")).text() },
  reconnect: true,
});
webcaster.onStateChange = (state) => console.log(state);
webcaster.onError = (error) => console.log(error.code, error.message);
await webcaster.setup();
webcaster.startPreview("preview");
await webcaster.startBroadcast();
\`\`\`

Without a bundler: \`<script src="https://headgate.example/sdk/${SCRIPT}"></script>\` and \`${GLOBAL}.Webcaster\`.
Settings, states, errors and the web token: docs/broadcasting.md of Headgate.
`;

/** Writes both bundles, minified, into `folder`.
 *  @type {(folder: string) => Promise<void>} */
export async function bundleWebcaster(folder) {
  const { build } = await import("rolldown");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const legal = `/*! ${NAME} ${version}, Apache-2.0 */`;
  const bundle = (file, output, source = "index.ts") =>
    build({
      input: join(root, "ts", "webcaster", source),
      platform: "browser",
      transform: { target: TARGET, define: { PACKAGE_VERSION: JSON.stringify(version) } },
      logLevel: "warn",
      output: { file: join(folder, file), minify: true, banner: legal, ...output },
    });
  await bundle(MODULE, { format: "esm" });
  await bundle(SCRIPT, {
    format: "iife",
    name: GLOBAL,
    footer: `globalThis.${FORMER_GLOBAL}??=${GLOBAL};`,
  });
  const v5 = join("v5", "rtc-user.ts");
  await bundle(V5_MODULE, { format: "esm" }, v5);
  await bundle(V5_SCRIPT, { format: "iife", name: V5_GLOBAL }, v5);
}

/** Makes the package in `folder` and returns the path of its .tgz.
 *  @type {(folder: string) => Promise<string>} */
export async function packWebcaster(folder) {
  const sources = join(root, "ts", "webcaster");
  const built = join(folder, NAME);
  rmSync(built, { recursive: true, force: true });
  mkdirSync(built, { recursive: true });
  await bundleWebcaster(built);
  const declarations = [
    "--declaration",
    "--emitDeclarationOnly",
    "--noEmit",
    "false",
    "--outDir",
    join(built, "types"),
  ];
  run(process.execPath, [join("node_modules", "ts7", "bin", "tsc"), "-p", sources, ...declarations]);
  writeFileSync(join(built, "README.md"), README);
  writeFileSync(join(built, "package.json"), `${JSON.stringify(manifest(), null, 2)}\n`);
  return pack([built], folder)[0];
}

function manifest() {
  const { version, license } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return {
    name: NAME,
    version,
    description: "Broadcast from a browser to Headgate by WebRTC (WHIP)",
    license,
    type: "module",
    sideEffects: false,
    exports: {
      ".": { types: "./types/index.d.ts", default: `./${MODULE}` },
      [`./${SCRIPT}`]: `./${SCRIPT}`,
      "./rtcuser": { types: "./types/v5/rtc-user.d.ts", default: `./${V5_MODULE}` },
      [`./${V5_SCRIPT}`]: `./${V5_SCRIPT}`,
      "./package.json": "./package.json",
    },
    main: `./${MODULE}`,
    types: "./types/index.d.ts",
    jsdelivr: `./${SCRIPT}`,
    files: ["*.js", "*.mjs", "types"],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [option, folder] = process.argv.slice(2);
  if (option === "--bundles") await bundleWebcaster(resolve(folder));
  else console.log(await packWebcaster(resolve(option ?? join(root, ".build"))));
}
