// The socket of the deprecated v5 signalling on a port of its own, over the WHIP gateway's stage: a real store, a real
// customer and a media core that only records its calls.
import { expect } from "vitest";
import { listen } from "../../ts/listen/http-port.ts";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { until } from "./child.ts";
import { addStream, STREAM } from "./publishing.ts";
import type { V5Client } from "./v5-client.ts";
import { openWhipGateway, type WhipGateway, type WhipGatewayOptions } from "./whip-gateway.ts";

export const OUTPUT = "rtmp://ingest.example/live";
/** A stream of another organisation. */
export const OTHER_STREAM = "Zz9Zz-00001";

export interface V5Stage {
  readonly gateway: WhipGateway;
  readonly http: string;
  readonly apiKey: string;
  /** A token for `STREAM`, or for the given subject. */
  newToken(subject?: { readonly streamname?: string; readonly exp?: number }): Promise<string>;
  /** Signs in with a token, starts and gets the offer; `parties` are the client's names for the two peers. */
  started(client: V5Client, more?: object): Promise<{ session: string; clientId: number; parties: Parties }>;
  /** Whether the media core was told to end it. */
  isEnded(clientId: number): boolean;
  /** Lets the media core end everything that runs. */
  endAll(): Promise<void>;
  close(): Promise<void>;
}

export interface Parties {
  readonly sender_peer: unknown;
  readonly receiver_peer: unknown;
}

/** What a deployed client sends at the start. */
export const wanted = (session: string, more: object = {}) => ({
  session_id: session,
  output: OUTPUT,
  streamname: STREAM,
  videowidth: "1280",
  videoheight: "720",
  videocodec: "H264",
  h264passthrough: "1",
  stream_label: "a",
  stream_label2: "b",
  audio: "1",
  video: "1",
  ...more,
});

export async function openV5Stage(options: Pick<WhipGatewayOptions, "capacity"> = {}): Promise<V5Stage> {
  const env = {
    HEADGATE_TRUSTED_PROXIES: "127.0.0.1",
    HEADGATE_ICE_SERVERS: "stun:stun.example:3478,turn:turn.example:3478",
    HEADGATE_ICE_TURN_SECRET: "s3cret",
    // Each test makes new connections from one address.
    HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0",
    HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "0",
  };
  const gateway = await openWhipGateway({ ...options, env });
  const address = { name: "test", host: "127.0.0.1", port: 0 };
  const port = await listen(gateway.fetch, address, { takesWebSockets: true });
  const now = gateway.clock.ms;
  const { key: apiKey } = await addApiKey(gateway.db, { organisationId: "org1", role: "user", now });
  const other = { id: "org2", hash: "Zz9Zz", name: "Other", plan: "paid", enabled: 1 } as const;
  await gateway.db
    .insertInto("organisation")
    .values({ ...other, webhook: null, created_at: now, updated_at: now })
    .execute();
  await addStream(gateway.db, OTHER_STREAM, "created", "org2");

  const stage: V5Stage = {
    gateway,
    http: `http://127.0.0.1:${port.port}`,
    apiKey,
    async newToken({ streamname = STREAM, exp = null }: { streamname?: string; exp?: number | null } = {}) {
      return (await gateway.tokens.issue({ streamname, ingesturl: OUTPUT, exp, nbf: null, org: "Ab1Cd" })).token;
    },
    async started(client, more = {}) {
      const session = await client.signIn({ jwt: await stage.newToken() });
      const { peer_id, error } = await client.call("start_broadcast", wanted(session, more));
      expect(error).toBeUndefined();
      const { sender_peer } = await client.push("sdp_message");
      const { clientId } = gateway.openings().at(-1) ?? { clientId: -1 };
      return { session, clientId, parties: { sender_peer: peer_id, receiver_peer: sender_peer } };
    },
    isEnded: (clientId) => gateway.media.commands.some((each) => each.command === "end" && each.clientId === clientId),
    async endAll() {
      for (const { clientId } of gateway.publishing.running()) gateway.end(clientId);
      await until("nothing runs", () => gateway.publishing.running().length === 0);
    },
    async close() {
      await port.stop();
      await gateway.close();
    },
  };
  return stage;
}
