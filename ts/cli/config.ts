// `headgate config check` and `headgate config print`.
import { loadConfig } from "../config.ts";
import { settingOf } from "../settings.ts";
import { readFlags } from "./flags.ts";

/** Says whether the configuration can be used. Throws `ConfigInvalid`. */
export function checkConfig(flags: Readonly<Record<string, unknown>>): void {
  const { file } = loadConfig(readFlags(flags));
  console.log(`The configuration is good${file === null ? "" : ` (${file})`}.`);
}

/** Prints every setting with its value and who said it; secrets are masked. */
export function printConfig(flags: Readonly<Record<string, unknown>>): void {
  for (const [key, { value, source }] of loadConfig(readFlags(flags)).origin) {
    const shown = settingOf(key).secret && value !== null ? "(secret)" : JSON.stringify(value);
    console.log(`${key} = ${shown}  # ${source}`);
  }
}
