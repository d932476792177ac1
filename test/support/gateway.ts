// The HTTP application over a real store in a folder of its own, with a key of each role and a clock that tests set. No
// port is opened; requests go through `app.request`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { type AppDeps, createApp } from "../../ts/app.ts";
import { loadConfig } from "../../ts/config.ts";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { addOrganisation } from "../../ts/organisation/organisations.ts";
import { createService } from "../../ts/service.ts";
import type { OrganisationTable, Schema } from "../../ts/store/schema.ts";
import type { Role } from "../../ts/store/tables/roles.ts";
import type { TokenKeys } from "../../ts/token/keys.ts";
import { createRecordedSessions, type RecordedSessions } from "./live-sessions.ts";
import { RecordingMedia } from "./recording-media.ts";
import { openTestStore } from "./stores.ts";

/** 2026-01-01T00:00:00Z, epoch ms. */
export const START_MS = 1_767_225_600_000;
export const RTMP_PORT = 1935;
/** The peer address of requests. */
const PEER = "203.0.113.7";

/** The addresses of each name; other names do not resolve. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "customer.example": ["93.184.216.34"],
  "inside.example": ["10.0.0.1"],
  localhost: ["127.0.0.1"],
};

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body; any other body as text, of an event stream its beginning; null if there was none. */
  readonly body: unknown;
}

export interface Call {
  /** Default: the administrator key of the first organisation; null for none. */
  readonly key?: string | null;
  /** Strings and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Member {
  readonly organisation: OrganisationTable;
  readonly keys: Readonly<Record<Role, string>>;
}

export interface Gateway extends Member {
  readonly app: ReturnType<typeof createApp>;
  /** Live sessions; initially none. */
  readonly live: RecordedSessions;
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  /** The given clock, which tests set. */
  readonly clock: { ms: number };
  readonly dataDir: string;
  readonly tokenKeys: TokenKeys;
  /** Everything logged so far, as text. */
  log(): string;
  call(method: string, path: string, options?: Call): Promise<Answer>;
  newOrganisation(name: string): Promise<Member>;
  /** Closes this gateway and opens another one on the same data, with other settings. */
  restart(env: Readonly<Record<string, string>>): Promise<Gateway>;
  close(): Promise<void>;
}

/** The way to other nodes, where there are some, and their publishes. `captures`: null for those of the service itself. */
type OtherNodes = Pick<AppDeps, "elsewhere" | "others"> & { readonly captures: null };

/** `env`: settings by their HEADGATE_ names. */
export async function openGateway(
  env: Readonly<Record<string, string>> = {},
  nodes: Partial<OtherNodes> = {},
): Promise<Gateway> {
  return await open(mkdtempSync(join(tmpdir(), "headgate-gateway-")), env, null, nodes);
}

/** A capture that has ended, whatever is requested. */
const oneCapture: AppDeps["captures"] = (() => {
  const done = { clientId: 1, streamId: "captured", media: true, path: "package.json", frames: 1, bytes: 1 };
  const one = {
    id: "0d5c1f6e-4f0c-4b1e-9a57-2f3a3b6f2c11",
    ...done,
    state: "ended",
    reason: "stopped",
    denied: null,
  } as const;
  const begin: AppDeps["captures"]["begin"] = async (_, record) => {
    await record(one);
    return one;
  };
  return { begin, find: () => one, stop: () => one };
})();

async function open(
  folder: string,
  env: Readonly<Record<string, string>>,
  present: Member | null,
  { elsewhere = null, others = null, captures: own }: Partial<OtherNodes> = {},
): Promise<Gateway> {
  const { config } = loadConfig({
    env: { HEADGATE_DATA_DIR: folder, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", ...env },
  });
  const store = await openTestStore(folder);
  const clock = { ms: START_MS, now: () => clock.ms };
  const lines: string[] = [];
  const recorded = createRecordedSessions();
  let organisations = 0;
  const media = new RecordingMedia();
  const service = await createService(config, {
    db: store.db,
    reads: store.reads,
    clock,
    log: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
    media: () => media,
    resolve,
  });
  const { tokenKeys } = service;
  // The test defines what is live.
  const { sessions, previews } = recorded;
  const captures = own === null ? service.appDeps.captures : oneCapture;
  const app = createApp({ ...service.appDeps, sessions, previews, captures, elsewhere, others });

  async function newOrganisation(name: string): Promise<Member> {
    const organisation = await addOrganisation(store.db, name, clock.now() + organisations, {
      operates: organisations === 0,
    });
    organisations += 1;
    const add = async (role: Role) =>
      (await addApiKey(store.db, { organisationId: organisation.id, role, now: clock.now() })).key;
    const keys = {
      administrator: await add("administrator"),
      user: await add("user"),
      readonly: await add("readonly"),
    };
    return { organisation, keys };
  }

  const first = present ?? (await newOrganisation("First"));
  return {
    organisation: first.organisation,
    keys: first.keys,
    app,
    live: recorded,
    db: store.db,
    reads: store.reads,
    clock,
    dataDir: folder,
    tokenKeys,
    log: () => lines.join(""),
    newOrganisation,
    async call(method, path, { key = first.keys.administrator, body, headers } = {}) {
      const init = {
        method,
        headers: {
          ...(key === null ? {} : { "x-service-apikey": key }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: bytesOf(body) }),
      };
      const peer = { incoming: { socket: { remoteAddress: PEER, remotePort: 1, remoteFamily: "IPv4" } } };
      const response = await app.request(`http://gateway.example${path}`, init, peer);
      return { status: response.status, headers: response.headers, body: await bodyOf(response) };
    },
    async restart(other) {
      await service.stop();
      await store.close();
      return await open(folder, other, first);
    },
    async close() {
      await service.stop();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function bodyOf(response: Response): Promise<unknown> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) return await beginningOf(response);
  const text = await response.text();
  if (text === "") return null;
  return type.startsWith("text/") ? text : JSON.parse(text);
}

/** The beginning of a body that does not end by itself. */
async function beginningOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const { value = new Uint8Array() } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

async function resolve(host: string): Promise<readonly string[]> {
  const addresses = NAMES[host];
  if (addresses === undefined) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
  return addresses;
}

function bytesOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === "string") return body;
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
}
