// Every setting except secrets as a flag, and the conversion of flags to settings.
import { flagOf, SETTING_KEYS, type SettingKey, settingOf } from "../settings.ts";

/** The command line as parsed by cleye, by name. */
export type GivenFlags = Readonly<Record<string, unknown>>;

/** One flag in cleye's format (an alias: an interface has no index signature). */
type Flag = { readonly type: StringConstructor; readonly description: string; readonly placeholder?: string };

/** Flag name in camel case, as cleye requires it, → setting. */
const KEYS = new Map<string, SettingKey>(
  SETTING_KEYS.filter((key) => !settingOf(key).secret).map((key) => [camel(flagOf(key)), key]),
);

/** The flags of `serve` and `config`: all settings, and the path of the configuration file. */
export function settingFlags(): Record<string, Flag> {
  const flags: Record<string, Flag> = {
    config: { type: String, description: "configuration file; default: headgate.toml in the data directory" },
  };
  for (const [name, key] of KEYS) {
    const { meaning, fallback } = settingOf(key);
    const shown = fallback === null || String(fallback) === "" ? "" : ` (${String(fallback)})`;
    flags[name] = { type: String, description: `${meaning || key}${shown}`, placeholder: placeholderOf(key) };
  }
  return flags;
}

/** The type of a setting's value, for the help. */
function placeholderOf(key: SettingKey): string {
  const { fallback, wanted } = settingOf(key);
  if (typeof fallback === "boolean") return "[on|off]";
  if (wanted.startsWith("a list of")) return "<a,b,…>";
  if (/^[\w-]+(, [\w-]+)+$/.test(wanted)) return `<${wanted.replaceAll(", ", "|")}>`;
  return typeof fallback === "number" || / from \d+ to \d+/.test(wanted) ? "<number>" : "<text>";
}

/** Whether a flag may be given without a value, which means "on". */
export function isSwitch(name: string): boolean {
  const key = KEYS.get(name);
  return key !== undefined && typeof settingOf(key).fallback === "boolean";
}

/** The settings given on the command line. A switch without a value means "on". */
export function readFlags(flags: Readonly<Record<string, unknown>>): {
  readonly flags: ReadonlyMap<SettingKey, string>;
  readonly file: string | null;
} {
  const said = new Map<SettingKey, string>();
  for (const [name, value] of Object.entries(flags)) {
    const key = KEYS.get(name);
    if (key !== undefined && typeof value === "string") said.set(key, value === "" ? "on" : value);
  }
  return { flags: said, file: typeof flags.config === "string" ? flags.config : null };
}

function camel(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}
