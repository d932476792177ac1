// The table of docs/settings.md: every setting, in the order of ts/settings.ts.

/** Values that need no further words. */
const PLAIN = ["text", "true or false"];
/** A meaning may end with what applies where nothing is set. */
const DEFAULT = /; default: (.*)$/;

/** @param {Record<string, import("../ts/settings.ts").Setting<unknown>>} settings */
export function settingsAsMarkdown(settings) {
  const rows = Object.entries(settings).map(([key, setting]) => {
    const { env, fallback, meaning, wanted, secret, reloads } = setting;
    const names = `\`${key}\`${reloads ? "↻" : ""}${secret ? "\\*" : ""}`;
    const unset = DEFAULT.exec(meaning)?.[1];
    const said = [meaning.replace(DEFAULT, ""), valuesOf(wanted, meaning)].filter(Boolean).join("; ");
    return row(names, unset ?? shown(fallback), env === variableOf(key) ? said : `${said} (\`${env}\`)`);
  });
  return [row("Setting", "Default", "What it is"), "|---|---|---|", ...rows].join("\n");
}

/** The environment variable of a setting that has no other name there. */
function variableOf(key) {
  return `HEADGATE_${key.toUpperCase().replaceAll(".", "_")}`;
}

/** What `wanted` adds to the meaning: no bound that nobody reaches, and the meaning of 0 once. */
function valuesOf(wanted, meaning) {
  if (PLAIN.includes(wanted) || wanted.split(", ").every((value) => meaning.includes(value))) return "";
  const bounds = wanted.replace(/^(?:a )?[\w\s/]+ from (?=\d)/, "");
  const said = meaning.includes("0: ") ? bounds.replace(/ \(0: .*\)$/, "") : bounds;
  return said.replace(/^[01] to \d{6,}(?: \((.*)\))?$/, "$1");
}

function shown(fallback) {
  if (fallback === null || fallback === "" || (Array.isArray(fallback) && fallback.length === 0)) return "none";
  if (typeof fallback === "boolean") return fallback ? "on" : "off";
  return `\`${fallback}\``;
}

const row = (...cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
