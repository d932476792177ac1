// `node scripts/broadcast-page.mjs`: builds the page /broadcast from ts/broadcast into dist/broadcast: one script, one
// style sheet and one icon whose names change with their content, and the page that refers to them.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";
import { root } from "./build.mjs";

// The build makes the gateway first.
const { PALETTE_BY_MEDIA } = await import(new URL("../dist/text/palette.js", import.meta.url).href);

const SOURCES = join(root, "ts", "broadcast");
const BUILT = join(root, "dist", "broadcast");

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const script = await build({
  input: join(SOURCES, "main.ts"),
  platform: "browser",
  transform: { target: "es2022", define: { PACKAGE_VERSION: JSON.stringify(version) } },
  logLevel: "warn",
  write: false,
  output: { format: "esm", minify: true },
});
const files = {
  SCRIPT: ["page", "js", script.output[0].code],
  STYLE: ["page", "css", PALETTE_BY_MEDIA + readFileSync(join(SOURCES, "page.css"), "utf8")],
  ICON: ["icon", "svg", readFileSync(join(SOURCES, "icon.svg"), "utf8")],
};

rmSync(BUILT, { recursive: true, force: true });
mkdirSync(BUILT, { recursive: true });
let page = readFileSync(join(SOURCES, "page.html"), "utf8");
for (const [mark, [name, ending, text]] of Object.entries(files)) {
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
  const file = `${name}-${hash}.${ending}`;
  writeFileSync(join(BUILT, file), text);
  page = page.replace(`%${mark}%`, `/broadcast/${file}`);
}
writeFileSync(join(BUILT, "page.html"), page);
