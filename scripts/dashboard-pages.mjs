// `node scripts/dashboard-pages.mjs`: builds the dashboard from ts/dashboard into dist/dashboard: its script, split
// into parts that are loaded with the pages that need them, one style sheet, one icon, and the document that refers to
// them. All names change with the content.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "rolldown";
import { root } from "./build.mjs";

// The build makes the gateway first.
const { PALETTE_STYLE } = await import(new URL("../dist/text/palette.js", import.meta.url).href);

const SOURCES = join(root, "ts", "dashboard");
const BUILT = join(root, "dist", "dashboard");
const FILES = "/dashboard/file/";

const { resolve } = createRequire(import.meta.url);
const packageFile = (name) => readFileSync(resolve(name), "utf8");
const hashOf = (text) => createHash("sha256").update(text).digest("hex").slice(0, 12);

const { output } = await build({
  input: { dashboard: join(SOURCES, "main.tsx") },
  platform: "browser",
  moduleTypes: { ".txt": "text" },
  transform: { target: "es2022" },
  logLevel: "warn",
  write: false,
  output: {
    format: "esm",
    minify: true,
    hashCharacters: "hex",
    entryFileNames: "[name]-[hash:12].js",
    chunkFileNames: ({ name }) => `${name.toLowerCase().replaceAll(/[^a-z]+/g, "-")}-[hash:12].js`,
  },
});
const entry = output.find(({ isEntry }) => isEntry).fileName;

// Pico is in a layer, so that our own rules take precedence, however low the specificity of their selectors.
const ownStyles = readdirSync(join(SOURCES, "style")).sort();
const style = [
  `@layer pico {${packageFile("@picocss/pico/css/pico.classless.min.css").replace(/^\uFEFF?@charset "[^"]+";/, "")}}`,
  packageFile("uplot/dist/uPlot.min.css"),
  PALETTE_STYLE,
  ...ownStyles.map((name) => readFileSync(join(SOURCES, "style", name), "utf8")),
].join("\n");
const icon = readFileSync(join(root, "ts", "broadcast", "icon.svg"), "utf8");
const names = {
  SCRIPT: entry,
  STYLE: `dashboard-${hashOf(style)}.css`,
  ICON: `icon-${hashOf(icon)}.svg`,
};

rmSync(BUILT, { recursive: true, force: true });
mkdirSync(BUILT, { recursive: true });
for (const { fileName, code } of output) writeFileSync(join(BUILT, fileName), code);
writeFileSync(join(BUILT, names.STYLE), style);
writeFileSync(join(BUILT, names.ICON), icon);
let page = readFileSync(join(SOURCES, "page.html"), "utf8");
for (const [mark, name] of Object.entries(names)) page = page.replace(`%${mark}%`, FILES + name);
writeFileSync(join(BUILT, "page.html"), page);
