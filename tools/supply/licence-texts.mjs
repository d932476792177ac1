// The licence texts that must accompany what ships.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const TEXT = /^(licen[cs]e|copying|notice|unlicense)/i;

/** One section for each text, however many components have it. @param {readonly import("./components.mjs").Component[]} components */
export function licenceTexts(components) {
  const sections = new Map();
  for (const component of components) {
    for (const text of textsIn(component.folder)) {
      sections.set(text, [...(sections.get(text) ?? []), titleOf(component)]);
    }
  }
  const withText = new Set([...sections.values()].flat());
  const bare = components.map(titleOf).filter((title) => !withText.has(title));
  sections.set("These bring no text of their own: the licence is the one that is named.", bare);
  return [...sections].map(([text, titles]) => `${titles.join("\n")}\n\n${text}\n`).join(`\n${"-".repeat(80)}\n\n`);
}

const titleOf = ({ name, version, licence }) => `${name} ${version} (${licence})`;

function textsIn(folder) {
  if (folder === null) return [];
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile() && TEXT.test(entry.name));
  return files.map(({ name }) => readFileSync(join(folder, name), "utf8").replaceAll("\r\n", "\n").trim());
}
