// Commands that call a running service through its management API, with the API key of HEADGATE_API_KEY or
// HEADGATE_API_KEY_FILE: `headgate sessions …`; `headgate upgrade`, which uses its control
// socket; and `headgate openapi`, which needs no service.
import { loadConfig, readVersion } from "../config.ts";
import { askToUpgrade } from "../handover/control.ts";
import { ask, askPages } from "./asking.ts";
import { type GivenFlags, readFlags } from "./flags.ts";
import { print, table } from "./output.ts";
import { endOf } from "./stream/end-flags.ts";
import { unknownVerb, wanted } from "./words.ts";

/** Members of a session record that are shown as columns. */
const SESSION_COLUMNS = [
  "client_id",
  "streamname",
  "protocol",
  "on_air",
  "address",
  "accepted_at",
  "bytes_in",
  "bytes_out",
  "dropped_frames",
  "subscribers",
] as const;

export async function runSessions(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, clientId] = words;
  const path = () => `/session/${encodeURIComponent(wanted(clientId, "the client id"))}`;
  switch (verb) {
    case "ls": {
      const all = { path: "/session", query: new URLSearchParams(), quantity: Number.POSITIVE_INFINITY };
      const { rows: sessions } = await askPages(
        flags,
        all,
        (page: readonly Readonly<Record<string, unknown>>[]) => page,
      );
      const rows = sessions.map((session) => SESSION_COLUMNS.map((name) => String(session[name])));
      return print(flags, sessions, table([SESSION_COLUMNS, ...rows]));
    }
    case "show": {
      const session = await ask(flags, "GET", path());
      return print(flags, session, [JSON.stringify(session, null, 2)]);
    }
    case "kick":
      return print(flags, await ask(flags, "POST", `${path()}/kick`, endOf(flags)), [`Publish ${clientId} has ended.`]);
    default:
      throw unknownVerb("sessions", verb, ["ls", "show CLIENT_ID", "kick CLIENT_ID"]);
  }
}

/** Prints the API description of this version. */
export async function runOpenapi(): Promise<void> {
  const { apiDocument } = await import("../app.ts");
  console.log(JSON.stringify(apiDocument(readVersion()), null, 2));
}

/** Hands the running service over to a new process, which runs the code presently on disk. */
export async function runUpgrade(_: readonly string[], flags: GivenFlags): Promise<void> {
  const { config } = loadConfig(readFlags(flags));
  const say = (line: string) => flags.json || console.log(line);
  const { pid, former, publishes, drainS } = await askToUpgrade(config.dataDir, (line) => void say(line));
  const stay =
    publishes === 0
      ? `The former process, ${former}, has no publishes and will exit in a moment.`
      : `${publishes} ${publishes === 1 ? "publish stays" : "publishes stay"} with the former process, ${former}, until they end, at most ${drainS} s.`;
  print(flags, { pid, former_pid: former, publishes, drain_s: drainS }, [
    `Process ${pid} now accepts all new connections.`,
    stay,
  ]);
}
