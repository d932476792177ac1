// The table of docs/settings.md: every setting, in the order of ts/settings.ts.

/** Values that need no further words. */
const PLAIN = ["text", "true or false"];
/** A meaning may end with what applies where nothing is set. */
const DEFAULT = /; default: (.*)$/;

/** @param {Record<string, import("../ts/settings.ts").Setting<unknown>>} settings */
export function settingsAsMarkdown(settings) {
  const rows = Object.entries(settings).map(([key, setting]) => {
    const { env, fallback, meaning, wanted, secret, reloads } = setting;
    const names = `\`${key}\`${reloads ? " ↻" : ""}${secret ? " *" : ""}`;
    const unset = DEFAULT.exec(meaning)?.[1];
    const values = PLAIN.includes(wanted) || meaning.includes(wanted) ? "" : wanted;
    return row(names, `\`${env}\``, unset ?? shown(fallback), meaning.replace(DEFAULT, ""), values);
  });
  return [row("Setting", "Environment", "Default", "What it is", "Values"), "|---|---|---|---|---|", ...rows].join(
    "\n",
  );
}

function shown(fallback) {
  if (fallback === null || fallback === "" || (Array.isArray(fallback) && fallback.length === 0)) return "none";
  if (typeof fallback === "boolean") return fallback ? "on" : "off";
  return `\`${fallback}\``;
}

const row = (...cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
