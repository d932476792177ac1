// The command line. Verbs, help and exit codes are a contract with operators (operations.md §1); each verb is told in
// its own file.
import { cli, command, type Flags } from "cleye";
import { readVersion } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { nearest, similar } from "../nearest.ts";
import { askingFlags } from "./asking.ts";
import { organisationFlags, storeFlags, unknownVerb } from "./at-store.ts";
import { captureFlags, replayFlags, runCapture, runReplay } from "./capture.ts";
import { versionWithCommit } from "./commit.ts";
import { runConfig } from "./config.ts";
import { runDoctor } from "./doctor/doctor.ts";
import { exitCodeOf } from "./exit-code.ts";
import { runExplain } from "./explain.ts";
import { type GivenFlags, isSwitch, settingFlags } from "./flags.ts";
import { runKeys, runToken } from "./keys.ts";
import { runNodes } from "./nodes.ts";
import { runInit, runOrganisation, runUser } from "./organisations.ts";
import { runService } from "./serve.ts";
import { runOpenapi, runSessions, runUpgrade, runUpstreams } from "./service.ts";
import { backupFlags, runBackup } from "./store/backup.ts";
import { runRestore } from "./store/restore.ts";
import { runStore, storeCommandFlags } from "./store/store-command.ts";
import { runStream, STREAM_VERBS, streamFlags } from "./streams.ts";
import { runWebhook, type WebhookFlags, webhookFlags } from "./webhook-command.ts";

interface Verb {
  /** In the help of the verb; every word is optional for cleye, so that our own errors say what is missing. */
  readonly words: string;
  readonly flags: Flags;
  readonly help: string;
  readonly run: (words: readonly string[], flags: GivenFlags) => Promise<void> | void;
}

const role = { type: String, description: "create: administrator, user or readonly" } as const;
const json = { type: Boolean, description: "print JSON" } as const;

const limitFlag = (what: string) =>
  ({ type: String, description: `limit: ${what}; 0: any number; default: as the service has it` }) as const;

function verbs(): Readonly<Record<string, Verb>> {
  const settings = settingFlags();
  return {
    serve: { words: "", flags: settings, help: "Run the service (the default)", run: (_, flags) => runService(flags) },
    init: { words: "", flags: storeFlags, help: "Make the store, the first organisation and its keys", run: runInit },
    doctor: {
      words: "",
      flags: { ...settings, json },
      help: "Look at what would stop a service here: store and key, ports, certificates, names, webhooks, clock, media core",
      run: runDoctor,
    },
    config: {
      words: "check | print | schema",
      flags: { ...settings, json },
      help: "Check the configuration, print it with the source of each value, or list every setting",
      run: runConfig,
    },
    organisation: {
      words: "ls | create NAME | enable NAME | disable NAME | limit NAME",
      flags: {
        ...organisationFlags,
        streams: limitFlag("streams that it may have live at a time"),
        ingestKbps: limitFlag("what they may send together, kbit/s"),
        setupsPerSecond: limitFlag("publish requests"),
      },
      help: "Organisations of this deployment",
      run: runOrganisation,
    },
    user: {
      words: "ls | create EMAIL | password EMAIL | role EMAIL | rm EMAIL",
      flags: { ...organisationFlags, role },
      help: "People who sign in",
      run: runUser,
    },
    keys: {
      words: "ls | create | rotate ID | revoke ID",
      flags: { ...organisationFlags, role, label: { type: String, description: "create: what the key is for" } },
      help: "API keys",
      run: runKeys,
    },
    stream: {
      words: STREAM_VERBS.join(" | "),
      flags: streamFlags,
      help: "Streams (to end a running publish, the service is asked with HEADGATE_API_KEY)",
      run: runStream,
    },
    token: {
      words: "create NAME | verify TOKEN | revoke JTI | keys | rotate | forget KID",
      flags: {
        ...storeFlags,
        ingestUrl: { type: String, description: "create: the RTMP URL the token is for" },
        stream: { type: String, description: "revoke: every token of this stream name instead" },
        atOnce: { type: Boolean, description: "rotate: also when the next key was shown for a short while only" },
      },
      help: "Web tokens and the keys that sign them",
      run: runToken,
    },
    webhook: {
      words: "test | deliveries | replay ID | simulate",
      flags: webhookFlags,
      help: "Try the webhook, see what it was sent, send it again, or stand in for it",
      run: (words, flags) => runWebhook(words, flags as unknown as WebhookFlags & GivenFlags),
    },
    sessions: {
      words: "ls | show CLIENT_ID | kick CLIENT_ID",
      flags: askingFlags,
      help: "Running publishes (asks the service, with HEADGATE_API_KEY)",
      run: runSessions,
    },
    explain: {
      words: "CLIENT_ID",
      flags: askingFlags,
      help: "What happened to one publish, now or weeks ago (asks the service, with HEADGATE_API_KEY)",
      run: runExplain,
    },
    capture: {
      words: "CLIENT_ID FILE | --next STREAM_ID FILE",
      flags: captureFlags,
      help: "What arrives of a publish to a file, without its secrets, for a bug report (asks the service, with HEADGATE_API_KEY)",
      run: runCapture,
    },
    replay: {
      words: "FILE",
      flags: replayFlags,
      help: "Play a capture again and compare the outcome; no service is needed",
      run: runReplay,
    },
    upstreams: {
      words: "ls CLIENT_ID | add CLIENT_ID URL | rm CLIENT_ID ID",
      flags: { ...askingFlags, label: { type: String, description: "add: what to call it" } },
      help: "Where a running publish is pushed (asks the service, with HEADGATE_API_KEY)",
      run: runUpstreams,
    },
    nodes: {
      words: "drain NAME | undrain NAME | [ls]",
      flags: storeFlags,
      help: "Nodes on this store (ls is the default), and which of them take no new publishes",
      run: runNodes,
    },
    upgrade: {
      words: "",
      flags: storeFlags,
      help: "Have the running service followed by a new process, of the code on the disk, without a break",
      run: runUpgrade,
    },
    backup: {
      words: "FILE",
      flags: backupFlags,
      help: "Copy the embedded store while the service runs",
      run: runBackup,
    },
    restore: {
      words: "FILE",
      flags: backupFlags,
      help: "Put a backup and its key into a data directory without a store",
      run: runRestore,
    },
    store: {
      words: "copy FROM TO",
      flags: storeCommandFlags,
      help: "Move the store: FROM and TO are a data directory or a postgresql:// URL, with no service on them",
      run: runStore,
    },
    openapi: {
      words: "",
      flags: { json: { ...json, description: "as it always does" } },
      help: "Print the description of the API",
      run: runOpenapi,
    },
  };
}

/** The exit codes, for the help. */
const EXIT_CODES =
  "0 done · 1 failed · 2 configuration or command line · 3 a port is taken · 4 the store cannot be opened";

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
    await verb.run(parsed._, parsed.flags as GivenFlags);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    fail(error.message, exitCodeOf(error));
  }
}

/** Nothing on the command line is overlooked. Throws `ConfigInvalid`. */
function requireKnown(
  name: string,
  verb: Verb,
  parsed: { readonly _: readonly string[]; readonly flags: object; readonly unknownFlags: object },
): void {
  const [unknown] = Object.keys(parsed.unknownFlags);
  if (unknown !== undefined) {
    const known = Object.keys(verb.flags).map(kebab);
    const said = unknown.length === 1 ? `-${unknown}` : `--${unknown}`;
    throw new ConfigInvalid(`${said} is not known; did you mean --${nearest(unknown, [...known, "help"])}?`);
  }
  requireWords(name, verb.words, parsed._);
  for (const [flag, value] of Object.entries(parsed.flags)) {
    // A switch without a value says "on"; what others mean without one nobody knows.
    if (value === "" && !isSwitch(flag) && !isDefault(verb, flag, value))
      throw new ConfigInvalid(`--${kebab(flag)} needs a value`);
    if (Number.isNaN(value)) throw new ConfigInvalid(`--${kebab(flag)} must be a number`);
  }
}

/** `known`: `ls | show ID`, or the words of a command that does one thing. Throws `ConfigInvalid`. */
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

/** The command line with its command: `serve` unless another is named, and other ways to ask for help. */
function wordsOf(argv: readonly string[]): readonly string[] {
  const [first, ...others] = argv;
  if (first === undefined) return ["serve"];
  if (first === "help") return [...others, "--help"];
  if (first === "-v" || first === "-V") return ["--version"];
  return first.startsWith("-") && !["--help", "-h", "--version"].includes(first) ? ["serve", ...argv] : argv;
}

function fail(message: string, code: number): void {
  for (const line of message.split("\n")) console.error(`headgate: ${line}`);
  process.exit(code);
}
