// `headgate settings …`: the settings of the organisation whose API key is used. The running service checks and applies
// them at once.
import { ConfigInvalid } from "../../errors.ts";
import { jsonText } from "../../text/terminal.ts";
import { ask } from "../asking.ts";
import { SETTINGS_VERBS } from "../command-flags.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table } from "../output.ts";
import { unknownVerb, wanted } from "../words.ts";

const PATH = "/organisation/settings";

export async function runSettings(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, name, value] = words;
  switch (verb) {
    case "show":
      return show(flags, await ask(flags, "GET", PATH));
    case "set": {
      const setting = wanted(name, "the name of a setting (headgate settings show)");
      const known = (await ask(flags, "GET", PATH)) as object;
      if (!Object.hasOwn(known, setting))
        throw new ConfigInvalid(`there is no setting ${setting}; there are ${Object.keys(known).join(", ")}`);
      const given = settingValue(wanted(value, `the value of ${setting}`));
      const present: unknown = Reflect.get(known, setting);
      if (typeof present === "boolean" && typeof given !== "boolean")
        throw new ConfigInvalid(`${setting} is on or off, not ${value}`);
      return show(flags, await ask(flags, "PUT", PATH, { [setting]: given }));
    }
    default:
      throw unknownVerb("settings", verb, SETTINGS_VERBS);
  }
}

/** `on` and `off` are the words of the configuration for true and false; other values are JSON, else text. */
function settingValue(given: string): unknown {
  if (given === "on" || given === "off") return given === "on";
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function show(flags: GivenFlags, settings: unknown): void {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  const rows = Object.entries(settings as object).map(([name, value]) => [name, text(value)]);
  print(flags, settings, table([["setting", "value"], ...rows]));
}

/** `headgate api`: any request of the API, for what has no verb of its own. */
export async function runApi(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [given, path, text] = words;
  const method = wanted(given, "the method: GET, POST, PUT, PATCH or DELETE").toUpperCase();
  if (!["GET", "POST", "PUT", "PATCH", "DELETE"].includes(method))
    throw new ConfigInvalid(`${given} is not a method: GET, POST, PUT, PATCH or DELETE`);
  const to = wanted(path, "the path, such as /organisation (headgate openapi lists them)");
  // With two slashes a path would name another host, which must not receive the key.
  if (!/^\/(?![/\\])/.test(to)) throw new ConfigInvalid(`${to} is not a path: it must begin with one slash`);
  console.log(jsonText(await ask(flags, method, to, text === undefined ? undefined : bodyOf(text))));
}

function bodyOf(text: string): object {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body;
  } catch {}
  throw new ConfigInvalid(`the body is not a JSON object: ${text}`);
}
