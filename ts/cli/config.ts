// `headgate config check`, `headgate config print` and `headgate config schema`.
import { inspectCertificates } from "../certificate.ts";
import { clock } from "../clock.ts";
import { type Config, loadConfig } from "../config.ts";
import { ConfigInvalid } from "../errors.ts";
import { flagOf, SETTING_KEYS, type SettingKey, settingOf } from "../settings.ts";
import { type GivenFlags, readFlags } from "./flags.ts";
import { print } from "./output.ts";
import { unknownVerb } from "./words.ts";

export function runConfig(words: readonly string[], flags: GivenFlags): void {
  switch (words[0]) {
    case "check":
      checkConfig(flags);
      break;
    case "print":
      printConfig(flags);
      break;
    case "schema":
      printSchema(flags);
      break;
    default:
      throw unknownVerb("config", words[0], ["check", "print", "schema"]);
  }
}

/** Reports whether the configuration can be used. Throws `ConfigInvalid`. */
function checkConfig(flags: GivenFlags): void {
  const { config, file } = loadConfig(readFlags(flags));
  const warnings = usableCertificates(config, clock.now());
  print(flags, { good: true, file, warnings }, [
    ...warnings.map((warning) => `Warning: ${warning}`),
    `The configuration is valid${file === null ? "" : ` (${file})`}.`,
  ]);
}

/** Warnings about the certificates of the configuration. Throws `ConfigInvalid` when they cannot be used. */
export function usableCertificates(config: Config, now: number): readonly string[] {
  const reports = inspectCertificates(config, now);
  const faults = reports.flatMap((report) => report.faults);
  if (faults.length > 0) throw new ConfigInvalid(faults.join("\n"));
  return reports.flatMap((report) => report.warnings);
}

/** Prints every setting with its value and source, as TOML that can be read again; secrets are masked, and printed as
 *  comments like settings without a value. */
function printConfig(flags: GivenFlags): void {
  const shown = [...loadConfig(readFlags(flags)).origin].map(([key, { value, source }]) => {
    return { key, value: isMasked(key, value) ? MASK : value, source };
  });
  const lines = shown.map(({ key, value, source }) => {
    if (value === null) return `# ${key} is not set  # ${source}`;
    return value === MASK ? `# ${key} = ${MASK}  # ${source}` : `${key} = ${JSON.stringify(value)}  # ${source}`;
  });
  print(flags, shown, lines);
}

const MASK = "(secret)";

function isMasked(key: SettingKey, value: unknown): boolean {
  const { secret = false, hidden = false } = settingOf(key);
  const isSet = value !== null && !(Array.isArray(value) && value.length === 0);
  return (secret || hidden) && isSet;
}

/** Prints all settings: their names in the file, in the environment and as flags, defaults and meanings. */
function printSchema(flags: GivenFlags): void {
  const settings = SETTING_KEYS.map((key) => {
    const { env, fallback, wanted, meaning, secret = false } = settingOf(key);
    return {
      key,
      environment: env,
      flag: secret ? null : `--${flagOf(key)}`,
      default: fallback,
      wanted,
      meaning,
      secret,
    };
  });
  const lines = settings.flatMap(({ key, environment, flag, default: fallback, wanted, meaning }) => [
    `${key}  (${[environment, flag].filter(Boolean).join(", ")})`,
    `    ${[meaning, `${wanted}; default ${JSON.stringify(fallback)}`].filter(Boolean).join(". ")}`,
  ]);
  print(flags, settings, lines);
}
