// The command line. Verbs, help and exit codes are a contract with operators (docs/operating.md); each verb is
// implemented in its own file.
import { cli, command } from "cleye";
import { readVersion } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { nearest, similar } from "../text/nearest.ts";
import { printable } from "../text/terminal.ts";
import { versionWithCommit } from "./commit.ts";
import { exitCodeOf } from "./exit-code.ts";
import { type GivenFlags, isSwitch } from "./flags.ts";
import { type Verb, verbs } from "./verbs.ts";
import { unknownVerb } from "./words.ts";

/** The exit codes, for the help. */
const EXIT_CODES =
  "0 success · 1 failure · 2 invalid configuration or command line · 3 a port is in use · 4 the store cannot be opened";

/** Runs one command line, without the program's own name. Exits the process with the documented codes. */
export async function run(argv: readonly string[]): Promise<void> {
  const known = verbs();
  const commands = Object.entries(known).map(([name, { words, flags, help }]) =>
    command({
      name,
      parameters: words === "" ? [] : ["[words...]"],
      flags,
      help: { description: help, ...(words === "" ? {} : { usage: `headgate ${name} ${words}` }) },
    }),
  );
  const words = wordsOf(argv);
  const parsed = cli(
    {
      name: "headgate",
      version: versionWithCommit(readVersion()),
      commands,
      help: {
        description: `Live ingest: RTMP and WHIP in, the customer's webhook decides, RTMP out.\nExit codes: ${EXIT_CODES}`,
      },
    },
    undefined,
    [...words],
  );
  const verb = known[parsed.command ?? ""];
  try {
    if (verb === undefined) {
      const name = words[0] ?? "";
      const meant = similar(name, Object.keys(known));
      return fail(
        `${name} is not a command${meant === null ? "." : `; did you mean ${meant}?`} See headgate --help`,
        2,
      );
    }
    requireKnown(parsed.command ?? "", verb, parsed);
    if (parsed.command !== "serve") watchOutput();
    await verb.run(parsed._, parsed.flags as GivenFlags);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    fail(error.message, exitCodeOf(error));
  }
}

/** Rejects everything on the command line that is unknown. Throws `ConfigInvalid`. */
function requireKnown(
  name: string,
  verb: Verb,
  parsed: { readonly _: readonly string[]; readonly flags: object; readonly unknownFlags: object },
): void {
  const [unknown] = Object.keys(parsed.unknownFlags);
  if (unknown !== undefined) {
    const known = Object.keys(verb.flags).map(kebab);
    if (/^\d/.test(unknown))
      throw new ConfigInvalid(
        `-${unknown} is taken for a flag: write a negative value with =, as in --flag=-${unknown}`,
      );
    const said = unknown.length === 1 ? `-${unknown}` : `--${unknown}`;
    throw new ConfigInvalid(`${said} is not known; did you mean --${nearest(unknown, [...known, "help"])}?`);
  }
  requireWords(name, verb.words, parsed._);
  requireOwnFlags(name, verb, parsed);
  for (const [flag, value] of Object.entries(parsed.flags)) {
    // A switch without a value means "on"; other flags require one.
    if (value === "" && !isSwitch(flag) && !isDefault(verb, flag, value))
      throw new ConfigInvalid(`--${kebab(flag)} needs a value`);
    if (Number.isNaN(value)) throw new ConfigInvalid(`--${kebab(flag)} must be a number`);
  }
}

/** A flag that is for some verbs of its command says so: "stop, kick: …". Rejects it with any other, which would ignore it.
 *  Throws `ConfigInvalid`. */
function requireOwnFlags(
  name: string,
  verb: Verb,
  { _: [said = ""], flags }: { readonly _: readonly string[]; readonly flags: object },
): void {
  const verbs = verb.words.split(" | ").map((form) => form.split(" ", 1)[0] ?? "");
  for (const [flag, value] of Object.entries(flags)) {
    const declared = verb.flags[flag];
    if (value === undefined || typeof declared !== "object" || !("description" in declared)) continue;
    if ("default" in declared && declared.default === value) continue;
    const named = [...String(declared.description).matchAll(/(?:^|; )([a-z]+(?:, [a-z]+)*)(?: --\w+)?: /g)];
    const own = named.flatMap(([, list = ""]) => list.split(", ")).filter((one) => verbs.includes(one));
    if (own.length > 0 && !own.includes(said))
      throw new ConfigInvalid(`--${kebab(flag)} is for ${name} ${own.join(", ")}, not for ${name} ${said}`);
  }
}

/** `known`: `ls | show ID`, or the words of a command that has no verbs. Throws `ConfigInvalid`. */
function requireWords(name: string, known: string, said: readonly string[]): void {
  const forms = known.split(" | ").map((form) => form.split(" ").filter(Boolean));
  const isVerb = (word: string | undefined) => word !== undefined && /^[a-z]/.test(word);
  const form = forms.find(([first]) => !isVerb(first) || first === said[0]);
  if (form === undefined) throw unknownVerb(name, said[0], known.split(" | "));
  const extra = said[form.length];
  if (extra === undefined) return;
  const verb = isVerb(form[0]) ? ` ${form[0]}` : "";
  throw new ConfigInvalid(`${name}${verb} takes no further word: ${extra}`);
}

function isDefault(verb: Verb, flag: string, value: string): boolean {
  const declared = verb.flags[flag];
  return typeof declared === "object" && "default" in declared && declared.default === value;
}

const kebab = (flag: string) => flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** The command line with its command: nothing at all asks for help, and flags alone are those of `serve`; `help` and `-v`
 *  become the flags that cleye knows. */
function wordsOf(argv: readonly string[]): readonly string[] {
  const [first, ...others] = argv;
  // A service of a former version that was started without a word starts its successor likewise, on a channel.
  if (first === undefined) return [process.channel ? "serve" : "--help"];
  if (first === "help") return [...others, "--help"];
  if (first === "-v" || first === "-V") return ["--version"];
  return first.startsWith("-") && !["--help", "-h", "--version"].includes(first) ? ["serve", ...argv] : argv;
}

/** Output that cannot be written, as on a full disk, is no success; the work goes on. Who closes a pipe has read enough. */
function watchOutput(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || process.exitCode === 1) return;
    process.exitCode = 1;
    console.error(`headgate: the output cannot be written: ${error.message}`);
  });
}

function fail(message: string, code: number): void {
  for (const line of message.split("\n")) console.error(`headgate: ${printable(line)}`);
  process.exit(code);
}
