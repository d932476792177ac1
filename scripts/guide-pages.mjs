// `node scripts/guide-diagrams.mjs`: draws the Mermaid diagrams of the guide into dist/guide/diagrams.json, an object from
// the SHA-256 of a diagram's text to its SVG. The page colours it, light or dark: the drawing has classes and presentation
// attributes but no style of its own, which the policy of the page would refuse.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderMermaidSVG } from "beautiful-mermaid";
import { root } from "./build.mjs";

const BUILT = join(root, "dist", "guide");
const DIAGRAM = /^```mermaid\n(.*?)\n```$/gms;

const diagrams = {};
for (const name of readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"))) {
  for (const [, text] of readFileSync(join(root, "docs", name), "utf8").matchAll(DIAGRAM)) {
    const hash = createHash("sha256").update(text).digest("hex");
    diagrams[hash] = withoutStyle(renderMermaidSVG(text, { transparent: true }), `d${hash.slice(0, 8)}-`);
  }
}
rmSync(BUILT, { recursive: true, force: true });
mkdirSync(BUILT, { recursive: true });
writeFileSync(join(BUILT, "diagrams.json"), JSON.stringify(diagrams));

/** `prefix`: of its ids, so that several diagrams of a page do not share one. */
function withoutStyle(svg, prefix) {
  return svg
    .replace(/<style>.*?<\/style>\s*/s, "")
    .replaceAll(/ style="[^"]*"/g, "")
    .replaceAll(/ data-[\w-]+="[^"]*"/g, "")
    .replaceAll(/ id="([^"]+)"/g, ` id="${prefix}$1"`)
    .replaceAll(/url\(#([^)]+)\)/g, `url(#${prefix}$1)`)
    .replaceAll(/(\d+\.\d)\d+/g, "$1");
}
