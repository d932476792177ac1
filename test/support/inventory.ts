// One of everything that an organisation can own, and a valid request for every guarded route: used by tables over
// ROUTES to test each route with any caller.
import type { RouteName } from "../../ts/organisation/roles.ts";
import type { LiveSession } from "../../ts/publish/live-sessions.ts";
import type { Gateway, Member } from "./gateway.ts";

const UPSTREAM = "rtmp://93.184.216.34/live/key";
export const PASSWORD = "correct horse battery";

/** What an organisation owns. */
export interface Inventory {
  readonly stream: { readonly id: string; readonly name: string };
  readonly upstream: string;
  readonly key: string;
  readonly person: string;
  readonly delivery: string;
  /** The jti of one of its tokens. */
  readonly token: string;
  readonly clientId: number;
}

/** The route with `{…}` filled in, and its body. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

let filled = 0;

/** Gives `member` one of everything; `tags`: of its stream. */
export async function fill(gateway: Gateway, { organisation, keys }: Member, tags: readonly string[] = []) {
  filled += 1;
  const post = async <T>(path: string, body: object): Promise<T> => {
    const answer = await gateway.call("POST", path, { key: keys.administrator, body });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  const { id, ingest } = await post<{ id: string; ingest: { rtmp: { streamname: string } } }>("/stream", { tags });
  const stream = { id, name: ingest.rtmp.streamname };
  const owned: Inventory = {
    stream,
    upstream: (await post<{ id: string }>(`/stream/${id}/upstream`, { url: UPSTREAM })).id,
    key: (await post<{ id: string }>("/organisation/key", { role: "user" })).id,
    person: (await post<{ id: string }>("/organisation/user", personOf("user"))).id,
    delivery: `msg_${filled}`,
    token: await tokenOf(post, stream.name),
    clientId: 1_000 + filled,
  };
  await gateway.db
    .insertInto("delivery")
    .values({
      ...{ id: owned.delivery, organisation_id: organisation.id, client_id: owned.clientId, call: "publish" },
      ...{ name: stream.name, url: "https://customer.example/", body: "call=publish", bytes: 12, attempts: 1 },
      ...{ outcome: "answered", status: 200, reason: null, latency_ms: 1, first_at: 0, last_at: 0 },
    })
    .execute();
  await gateway.db
    .insertInto("publish")
    .values({
      ...{ client_id: owned.clientId, organisation_id: organisation.id, stream_id: id, name: stream.name, app: "live" },
      ...{ address: "203.0.113.9", state: "ended", asked_at: 0, accepted_at: 0, ended_at: 0, end_reason: "silent" },
      ...{ bytes_in: 0, bytes_out: 0 },
    })
    .execute();
  gateway.live.live.push(sessionOf(organisation.id, owned));
  return owned;
}

async function tokenOf(post: <T>(path: string, body: object) => Promise<T>, streamname: string): Promise<string> {
  const body = { streamname, ingesturl: "rtmp://in.example/live" };
  const { token } = (await post<{ data: { token: string } }>("/webcaster", body)).data;
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).jti;
}

let persons = 0;

/** A new user with a role, as POST /organisation/user accepts it. */
export function personOf(role: string) {
  persons += 1;
  return { email: `person${persons}@customer.example`, password: PASSWORD, role };
}

function sessionOf(organisationId: string, { stream, clientId }: Inventory): LiveSession {
  const upstream = { id: "7", label: null, url: "rtmp://up.example:1935/live", maskedKey: "ab…", since: 0 } as const;
  const counters = { bytesIn: 0, bytesOut: 0, droppedFrames: 0 };
  return {
    ...{ clientId, organisationId, streamId: stream.id, name: stream.name, protocol: "whip", address: "203.0.113.9" },
    ...{
      acceptedAt: 0,
      continues: null,
      backup: false,
      onAir: true,
      timestampMs: 0,
      ...counters,
      subscribers: 0,
      maxBitrateKbps: 0,
      transcoderError: null,
      irregularities: [],
      findings: [],
    },
    tracks: { video: null, audio: null },
    upstreams: [
      {
        ...{ ...upstream, source: "session", state: "sending", lastError: null, lastCause: null },
        ...{ bytesOut: 0, droppedFrames: 0, reconnects: 0, audioError: null },
      },
    ],
  };
}

/** A valid request for each route about what `owned` names. */
export function requestOf(route: RouteName, owned: Inventory): Request {
  const [method, place] = route.split(" ") as [string, string];
  const body = BODIES[route];
  const path = place.replaceAll(/\{(\w+)\}/g, (_, name: string) => idOf(place, name, owned));
  return { method, path, ...(body === undefined ? {} : { body: body(owned) }) };
}

function idOf(path: string, name: string, owned: Inventory): string {
  if (name === "client_id") return String(owned.clientId);
  if (name === "upstream_id") return owned.upstream;
  if (path.startsWith("/session")) return "7";
  if (path.startsWith("/stream")) return owned.stream.id;
  if (path.startsWith("/capture")) return "0d5c1f6e-4f0c-4b1e-9a57-2f3a3b6f2c11";
  if (path.startsWith("/live")) return `${owned.stream.id}.flv`;
  if (path.startsWith("/organisation/key")) return owned.key;
  if (path.startsWith("/organisation/user")) return owned.person;
  if (path.startsWith("/organisation/webhook")) return owned.delivery;
  if (path.startsWith("/token")) return owned.token;
  throw new Error(`what does {${name}} of ${path} name?`);
}

/** A PNG of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4AWP4z8DwHwAFAAH/e+m+7wAAAABJRU5ErkJggg==";

const BODIES: { readonly [route in RouteName]?: (owned: Inventory) => object } = {
  "PUT /organisation/webhook": () => ({ webhook: "https://customer.example/hook" }),
  "POST /organisation/webhook/test": () => ({}),
  "PUT /organisation/webhook/copies": () => ({ webhook: "https://customer.example/hook" }),
  "POST /organisation/webhook/copies/test": () => ({}),
  "PUT /organisation/logo": () => ({ png: PIXEL }),
  "PUT /organisation/settings": () => ({ strict_arguments: true }),
  "POST /organisation/user": () => personOf("readonly"),
  "PUT /organisation/user/{id}": () => ({ role: "readonly" }),
  "PUT /organisation/identity-provider": () => ({
    ...{ issuer: "https://customer.example/realm", client_id: "headgate", client_secret: "secret" },
    ...{ role_claim: "groups", roles: [{ value: "staff", role: "readonly" }] },
  }),
  "POST /organisation/key": () => ({ role: "readonly" }),
  "POST /stream": () => ({ tags: [] }),
  "PUT /stream/{id}/tag": () => ({ tags: ["another"] }),
  "PUT /stream/{id}/title": () => ({ title: "Evening show" }),
  "PUT /stream/{id}/external-id": ({ stream }) => ({ external_id: `event-${stream.name}` }),
  "PUT /stream/{id}/hold": () => ({ hold_s: 20 }),
  "PUT /stream/{id}/switch": () => ({}),
  "PUT /stream/{id}/key": () => ({ publish_key: true }),
  "POST /session/{client_id}/kick": () => ({}),
  "PUT /session/{client_id}/bitrate": () => ({ max_bitrate_kbps: 500 }),
  "POST /session/{client_id}/upstream": () => ({ url: UPSTREAM }),
  "POST /stream/{id}/upstream": () => ({ url: `${UPSTREAM}2` }),
  "POST /stream/{id}/play-token": () => ({}),
  "POST /webcaster": ({ stream }) => ({ streamname: stream.name, ingesturl: "rtmp://in.example/live" }),
  "POST /webcaster/revoke": ({ stream }) => ({ streamname: stream.name }),
  "POST /capture": ({ stream }) => ({ stream: stream.id }),
  "PUT /me/password": () => ({ current: PASSWORD, password: `${PASSWORD} staple` }),
};
