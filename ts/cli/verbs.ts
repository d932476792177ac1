// The verbs of the command line: their words, flags and help, and where each is implemented.
import type { Flags } from "cleye";
import {
  askingFlags,
  auditFlags,
  backupFlags,
  captureFlags,
  endFlags,
  LOGO_VERBS,
  organisationFlags,
  refusalFlags,
  replayFlags,
  SETTINGS_VERBS,
  STREAM_VERBS,
  storeCommandFlags,
  storeFlags,
  streamFlags,
  TOKEN_VERBS,
  tokenFlags,
  UPSTREAM_VERBS,
  usageFlags,
  WEBHOOK_VERBS,
  type WebhookFlags,
  webhookFlags,
} from "./command-flags.ts";
import { type GivenFlags, settingFlags } from "./flags.ts";

export interface Verb {
  /** As shown in the help; for cleye every word is optional, so that our own errors say what is missing. */
  readonly words: string;
  readonly flags: Flags;
  readonly help: string;
  readonly run: (words: readonly string[], flags: GivenFlags) => Promise<void>;
}

const role = { type: String, description: "create, role: administrator, user or readonly" } as const;
const json = { type: Boolean, description: "print JSON" } as const;

const limitFlag = (what: string) =>
  ({ type: String, description: `limit: ${what}; 0: no limit; default: the service's own limit` }) as const;

/** Every verb by its name. The implementation is imported only when the verb runs: help and errors about mistyped verbs
 *  do not need it. */
export function verbs(): Readonly<Record<string, Verb>> {
  return { ...serviceVerbs(), ...ORGANISATION_VERBS, ...PUBLISH_VERBS, ...DEPLOYMENT_VERBS };
}

/** Those that run a service, or prepare one. */
function serviceVerbs(): Readonly<Record<string, Verb>> {
  const settings = settingFlags();
  return {
    serve: {
      words: "",
      flags: settings,
      help: "Run the service",
      run: async (_, flags) => await (await import("./serve/serve.ts")).runService(flags),
    },
    demo: {
      words: "",
      flags: { json, seconds: { type: Number, description: "end after this many seconds instead of by ^C" } },
      help: "See it work: a service on this machine alone, with a test picture (ffmpeg), until ^C; nothing of it is kept",
      run: async (_, flags) => await (await import("./demo.ts")).runDemo(flags),
    },
    init: {
      words: "",
      flags: storeFlags,
      help: "Create the store, the first organisation and its keys",
      run: async (words, flags) => await (await import("./organisations.ts")).runInit(words, flags),
    },
    doctor: {
      words: "",
      flags: { ...settings, json, verbose: { type: Boolean, description: "show what is right as well" } },
      help: "Check what would prevent a service from running here: store and key, ports, certificates, names, webhooks, clock, media core",
      run: async (words, flags) => await (await import("./doctor/doctor.ts")).runDoctor(words, flags),
    },
    config: {
      words: "check | print | schema",
      flags: { ...settings, json },
      help: "Check the configuration, print it with the source of each value, or list every setting",
      run: async (words, flags) => (await import("./config.ts")).runConfig(words, flags),
    },
  };
}

/** What belongs to organisations. */
const ORGANISATION_VERBS = {
  organisation: {
    words: "ls | create NAME | enable NAME | disable NAME | limit NAME | operator NAME",
    flags: {
      ...organisationFlags,
      streams: limitFlag("streams that may be live at a time"),
      ingestKbps: limitFlag("total bitrate of these streams, kbit/s"),
      setupsPerSecond: limitFlag("publish requests per second"),
    },
    help: "Organisations of this deployment",
    run: async (words, flags) => await (await import("./organisations.ts")).runOrganisation(words, flags),
  },
  user: {
    words: "ls | create EMAIL | password EMAIL | role EMAIL | rm EMAIL",
    flags: { ...organisationFlags, role },
    help: "People who sign in",
    run: async (words, flags) => await (await import("./organisations.ts")).runUser(words, flags),
  },
  keys: {
    words: "ls | create | rotate ID | revoke ID",
    flags: { ...organisationFlags, role, label: { type: String, description: "create: what the key is for" } },
    help: "API keys",
    run: async (words, flags) => await (await import("./keys.ts")).runKeys(words, flags),
  },
  stream: {
    words: STREAM_VERBS.join(" | "),
    flags: streamFlags,
    help: "Streams (to end a running publish, this calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./stream/streams.ts")).runStream(words, flags),
  },
  token: {
    words: TOKEN_VERBS.join(" | "),
    flags: tokenFlags,
    help: "Web tokens and play tokens, and the keys that sign them",
    run: async (words, flags) => await (await import("./token/command.ts")).runToken(words, flags),
  },
  webhook: {
    words: WEBHOOK_VERBS.join(" | "),
    flags: webhookFlags,
    help: "Set and test the webhook, list its deliveries, send one again, or simulate a customer",
    run: async (words, flags) => {
      const { runWebhook } = await import("./webhook/command.ts");
      await runWebhook(words, flags as WebhookFlags & GivenFlags);
    },
  },
  settings: {
    words: SETTINGS_VERBS.join(" | "),
    flags: askingFlags,
    help: "Settings of the organisation (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./asked/settings.ts")).runSettings(words, flags),
  },
  logo: {
    words: LOGO_VERBS.join(" | "),
    flags: askingFlags,
    help: "The picture that broadcasters see on /broadcast (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./asked/logo.ts")).runLogo(words, flags),
  },
  usage: {
    words: "",
    flags: usageFlags,
    help: "Bytes in and out, per stream and day (calls the service with HEADGATE_API_KEY)",
    run: async (_, flags) => await (await import("./asked/accounts.ts")).runUsage(flags),
  },
  audit: {
    words: "",
    flags: auditFlags,
    help: "What was changed, when and by whom (calls the service with HEADGATE_API_KEY)",
    run: async (_, flags) => await (await import("./asked/accounts.ts")).runAudit(flags),
  },
  api: {
    words: "METHOD PATH [BODY]",
    flags: askingFlags,
    help: "Any request of the API, with HEADGATE_API_KEY; prints the response as JSON (headgate openapi lists them)",
    run: async (words, flags) => await (await import("./asked/settings.ts")).runApi(words, flags),
  },
} satisfies Readonly<Record<string, Verb>>;

/** What publishes do. */
const PUBLISH_VERBS = {
  sessions: {
    words: "ls | show CLIENT_ID | kick CLIENT_ID",
    flags: { ...askingFlags, ...endFlags },
    help: "Running publishes (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./service.ts")).runSessions(words, flags),
  },
  refusals: {
    words: "",
    flags: refusalFlags,
    help: "Refused publishes and plays, and why",
    run: async (_, flags) => await (await import("./stream/refusals.ts")).runRefusals(flags),
  },
  explain: {
    words: "CLIENT_ID",
    flags: askingFlags,
    help: "Timeline of one publish, running or past (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./explain.ts")).runExplain(words, flags),
  },
  capture: {
    words: "CLIENT_ID FILE | --next STREAM_ID FILE",
    flags: captureFlags,
    help: "Write the incoming data of a publish to a file, without its secrets, for a bug report (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./capture.ts")).runCapture(words, flags),
  },
  replay: {
    words: "FILE",
    flags: replayFlags,
    help: "Replay a capture and compare the outcome; needs no running service",
    run: async (words, flags) => await (await import("./capture.ts")).runReplay(words, flags),
  },
  upstreams: {
    words: UPSTREAM_VERBS.join(" | "),
    flags: { ...askingFlags, label: { type: String, description: "add: a label for the upstream" } },
    help: "Upstreams of a running publish or a stream: list, add, pause, try again, test before the show (calls the service with HEADGATE_API_KEY)",
    run: async (words, flags) => await (await import("./upstreams.ts")).runUpstreams(words, flags),
  },
} satisfies Readonly<Record<string, Verb>>;

/** Nodes and their store. */
const DEPLOYMENT_VERBS = {
  nodes: {
    words: "drain NAME | undrain NAME | [ls]",
    flags: storeFlags,
    help: "Nodes on this store (ls is the default); drain one so that it accepts no new publishes",
    run: async (words, flags) => await (await import("./nodes.ts")).runNodes(words, flags),
  },
  upgrade: {
    words: "",
    flags: storeFlags,
    help: "Replace the running service with a new process of the installed version, without interruption",
    run: async (words, flags) => await (await import("./service.ts")).runUpgrade(words, flags),
  },
  backup: {
    words: "FILE",
    flags: backupFlags,
    help: "Back up the embedded store while the service is running",
    run: async (words, flags) => await (await import("./store/backup.ts")).runBackup(words, flags),
  },
  restore: {
    words: "FILE",
    flags: backupFlags,
    help: "Restore a backup and its key into a data directory without a store",
    run: async (words, flags) => await (await import("./store/restore.ts")).runRestore(words, flags),
  },
  store: {
    words: "copy FROM TO",
    flags: storeCommandFlags,
    help: "Copy the store: FROM and TO are each a data directory or a postgresql:// URL, not in use by a service",
    run: async (words, flags) => await (await import("./store/store-command.ts")).runStore(words, flags),
  },
  openapi: {
    words: "",
    flags: { json: { ...json, description: "print JSON (always on)" } },
    help: "Print the OpenAPI description of the API",
    run: async () => await (await import("./service.ts")).runOpenapi(),
  },
} satisfies Readonly<Record<string, Verb>>;
