// Publishing with a real store and a media core that only records what it was told.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { BadToken } from "../../ts/errors.ts";
import type { EndReason, EndRequest } from "../../ts/media/events.ts";
import type {
  Media,
  ParsedOffer,
  PlayerStatus,
  PublishSnapshot,
  SdpRefused,
  Upstream,
  WhipOffer,
  WhipPatched,
  WhipPublish,
} from "../../ts/media.ts";
import { createMetrics, type Metrics } from "../../ts/metrics.ts";
import { createCustomers } from "../../ts/organisation/customers.ts";
import { changeSettings, type OrganisationSettings } from "../../ts/organisation/settings.ts";
import { createStreamUpstreams, type StreamUpstreams } from "../../ts/organisation/upstreams.ts";
import { createWebhookSecrets, type WebhookSecrets } from "../../ts/organisation/webhook-secret.ts";
import { withAdmissionSteps } from "../../ts/publish/admission-steps.ts";
import { createPublishing, type Publishing, type PublishingDeps } from "../../ts/publish/lifecycle.ts";
import type { Schema, StreamState } from "../../ts/store/schema.ts";
import { openSecretBox } from "../../ts/store/secret-box.ts";
import { playToken } from "../../ts/token/play-token.ts";
import { requiredToken } from "../../ts/token/required-token.ts";
import type { Tokens } from "../../ts/token/tokens.ts";
import { openTestStore } from "./stores.ts";

/** How long a wait lasts before it fails the test, ms. */
const WAIT_LIMIT_MS = 8_000;

type Told =
  | {
      readonly told: "allow";
      readonly request: number;
      readonly clientId: number;
      readonly upstreams: readonly Upstream[];
    }
  | { readonly told: "allow_play"; readonly request: number }
  | { readonly told: "deny"; readonly request: number; readonly code: string; readonly description: string }
  | ({ readonly told: "open_whip" } & WhipPublish)
  | ({ readonly told: "add_upstream"; readonly clientId: number } & Upstream)
  | { readonly told: "remove_upstream"; readonly clientId: number; readonly id: string }
  | { readonly told: "patch_whip"; readonly clientId: number; readonly fragment: string }
  | { readonly told: "send_whip_data"; readonly clientId: number; readonly data: string }
  | { readonly told: "limit_whip_bitrate"; readonly clientId: number; readonly kbps: number }
  | { readonly told: "dial"; readonly push: number; readonly addresses: readonly string[] }
  | { readonly told: "end"; readonly clientId: number; readonly reason: string; readonly description: string };

/** A media core that does nothing by itself; the test ends its publishes. */
export class RecordingMedia implements Media {
  readonly rtmpPort = 1935;
  readonly rtmpTlsPort = null;
  readonly mediaPorts = [8189];
  readonly told: Told[] = [];
  readonly snapshots = new Map<number, PublishSnapshot>();
  allowThrows = false;

  allow(request: number, publish: { readonly clientId: number; readonly upstreams: readonly Upstream[] }): void {
    if (this.allowThrows) throw new Error("media core is gone");
    this.told.push({ told: "allow", request, ...publish });
    this.measure(publish.clientId, {});
  }
  allowPlay(request: number): void {
    this.told.push({ told: "allow_play", request });
  }
  deny(request: number, refusal: { readonly code: "denied" | "bad_name"; readonly description: string }): void {
    this.told.push({ told: "deny", request, code: refusal.code, description: refusal.description });
  }
  dial(push: number, addresses: readonly string[]): void {
    this.told.push({ told: "dial", push, addresses });
  }
  parseOffer(offer: string): ParsedOffer {
    // Opaque to the gateway, like the real one.
    if (offer.startsWith("v=0")) return { outcome: "parsed", offer: { text: offer } as unknown as WhipOffer };
    return { outcome: "refused", code: "offer_malformed", status: 400, detail: "The offer is not valid SDP" };
  }
  openWhip(publish: WhipPublish): string {
    if (this.allowThrows) throw new Error("media core is gone");
    this.told.push({ told: "open_whip", ...publish });
    this.measure(publish.clientId, {});
    return "v=0\r\n";
  }
  refuseFragment(fragment: string): SdpRefused | null {
    if (fragment.startsWith("a=")) return null;
    return { outcome: "refused", code: "fragment_malformed", status: 400, detail: "The fragment is not valid" };
  }
  /** What the next fragments lead to. */
  patched: WhipPatched = { outcome: "added" };
  patchWhip(clientId: number, fragment: string): WhipPatched {
    this.told.push({ told: "patch_whip", clientId, fragment });
    return this.patched;
  }
  sendWhipData(clientId: number, data: Uint8Array): boolean {
    this.told.push({ told: "send_whip_data", clientId, data: Buffer.from(data).toString("latin1") });
    return true;
  }
  limitWhipBitrate(clientId: number, kbps: number): boolean {
    this.told.push({ told: "limit_whip_bitrate", clientId, kbps });
    return this.snapshots.has(clientId);
  }
  readonly connected = new Set<number>();
  isWhipConnected(clientId: number): boolean {
    return this.connected.has(clientId);
  }
  whipDiagnostics(): null {
    return null;
  }
  setCertificate(): void {}
  transcoders(): number {
    return 0;
  }
  failedTranscoders(): number {
    return 0;
  }
  refusedConnections(): number {
    return 0;
  }
  kernelDrops(): null {
    return null;
  }
  readonly smallReceiveBuffer = null;
  end(clientId: number, reason: EndRequest, description: string): void {
    this.told.push({ told: "end", clientId, reason, description });
  }
  addUpstream(clientId: number, upstream: Upstream): "added" | "not_running" {
    this.told.push({ told: "add_upstream", clientId, ...upstream });
    return this.snapshots.has(clientId) ? "added" : "not_running";
  }
  removeUpstream(clientId: number, id: string): boolean {
    this.told.push({ told: "remove_upstream", clientId, id });
    return this.snapshots.has(clientId);
  }
  players(): readonly PlayerStatus[] {
    return [];
  }

  snapshot(clientId: number): PublishSnapshot | null {
    return this.snapshots.get(clientId) ?? null;
  }
  async stop(): Promise<void> {}

  /** Sets counters of a running publish. */
  measure(clientId: number, counters: Partial<PublishSnapshot>): void {
    const zero = {
      timestampMs: 0,
      bytesIn: 0,
      bytesOut: 0,
      receivedBytes: 0,
      silentMs: 0,
      subscribers: 0,
      droppedFrames: 0,
      tracks: { video: null, audio: null },
      upstreams: [],
      transcoderError: null,
    };
    this.snapshots.set(clientId, { clientId, ...zero, ...this.snapshots.get(clientId), ...counters });
  }
}

export interface Stage {
  readonly db: Kysely<Schema>;
  readonly media: RecordingMedia;
  readonly publishing: Publishing;
  readonly streamUpstreams: StreamUpstreams;
  /** Verifies what an organisation may require; refuses everything until a test puts another there. */
  readonly tokens: { verify: Tokens["verify"]; verifyForPlay: Tokens["verifyForPlay"] };
  readonly secrets: WebhookSecrets;
  readonly metrics: Metrics;
  /** Changes switches of the organisation. */
  change(settings: Partial<OrganisationSettings>): Promise<void>;
  /** Everything logged so far, as text. */
  log(): string;
  /** The given clock; tests move it. */
  readonly clock: { ms: number };
  /** Sends a publish request and returns what the media core was answered. */
  request(
    name: string,
    options?: { readonly arguments?: string | Buffer | null; readonly address?: string },
  ): Promise<Told>;
  /** Like `request`, without waiting; returns the request's number. */
  ask(name: string, options?: { readonly arguments?: string | Buffer | null; readonly address?: string }): number;
  answered(request: number): Promise<Told>;
  /** Sends a publish request that must be allowed; returns its client id. */
  allowed(name: string, options?: { readonly arguments?: string | Buffer | null }): Promise<number>;
  end(clientId: number, reason?: EndReason, bytes?: { readonly bytesIn: number; readonly bytesOut: number }): void;
  /** Forgets the process, keeps the data: what a kill -9 leaves. The old publishing is never heard of again. */
  crash(): Promise<Stage>;
  close(): Promise<void>;
}

export const STREAM = "Ab1Cd-9XyZ0";

export interface StageOptions {
  readonly webhook: string | null;
  readonly ca: string | null;
  readonly settings?: Partial<PublishingDeps["settings"]>;
}

/** One organisation with stream `STREAM`; updates every hour and a deadline of 2 s unless told otherwise. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-publish-"));
  const stage = await open(options, folder);
  const now = stage.clock.ms;
  await stage.db
    .insertInto("organisation")
    .values({
      id: "org1",
      hash: "Ab1Cd",
      name: "Org",
      plan: "paid",
      enabled: 1,
      webhook: options.webhook,
      created_at: now,
      updated_at: now,
    })
    .execute();
  await addStream(stage.db, STREAM, "created");
  return stage;
}

export async function addStream(
  db: Kysely<Schema>,
  name: string,
  state: StreamState,
  organisation = "org1",
): Promise<void> {
  const values = { id: `stream ${name}`, organisation_id: organisation, name, state, tags: "[]" };
  await db
    .insertInto("stream")
    .values({ ...values, created_at: 0, updated_at: 0 })
    .execute();
}

async function open(options: StageOptions, folder: string): Promise<Stage> {
  const store = await openTestStore(folder);
  const media = new RecordingMedia();
  const clock = { ms: 1_767_225_600_000 };
  const lines: string[] = [];
  const now = { now: () => clock.ms };
  const box = openSecretBox(folder);
  const secrets = createWebhookSecrets({ db: store.db, box, clock: now });
  const customers = createCustomers({ db: store.db, secrets, clock: now });
  const refuse = () => Promise.reject(new BadToken("jwt malformed"));
  const tokens = { verify: refuse, verifyForPlay: refuse };
  const metrics = createMetrics();
  const streamUpstreams = createStreamUpstreams({ db: store.db, secretBox: box });
  const publishing = withAdmissionSteps(createPublishing, {
    db: store.db,
    media: () => media,
    streamUpstreams: streamUpstreams.of,
    customers,
    holdsToken: (asked, name) => requiredToken(tokens)(asked, name),
    holdsPlayToken: (custom, name) => playToken(tokens)(custom, name),
    metrics,
    clock: now,
    log: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
    settings: {
      deadlineMs: 2_000,
      updateSeconds: 3_600,
      webhookCa: options.ca,
      dev: true,
      upstreamPush: [],
      playAllow: [],
      maxBitrateKbps: { all: 6_000, trial: 0 },
      duplicate: "reject_if_active",
      ...options.settings,
    },
  });
  let requests = 0;
  const stage: Stage = {
    db: store.db,
    media,
    publishing,
    streamUpstreams,
    tokens,
    secrets,
    metrics,
    async change(settings) {
      await changeSettings(store.db, "org1", settings, clock.ms);
      customers.forget("org1");
    },
    log: () => lines.join(""),
    clock,
    ask(name, { arguments: custom = null, address = "203.0.113.7" } = {}) {
      requests += 1;
      const bytes = custom === null ? null : Buffer.from(custom);
      publishing.handle({
        kind: "publish_requested",
        request: requests,
        app: "live",
        name: Buffer.from(name),
        arguments: bytes,
        address,
      });
      return requests;
    },
    answered(request) {
      return until(() => media.told.find((told) => "request" in told && told.request === request));
    },
    request(name, told) {
      return stage.answered(stage.ask(name, told));
    },
    async allowed(name, told) {
      const answer = await stage.request(name, told);
      if (answer.told !== "allow") throw new Error(`not allowed: ${JSON.stringify(answer)}`);
      return answer.clientId;
    },
    end(clientId, reason = "unpublished", bytes = { bytesIn: 0, bytesOut: 0 }) {
      media.snapshots.delete(clientId);
      publishing.handle({ kind: "publish_ended", clientId, reason, ...bytes });
    },
    async crash() {
      await store.close();
      const next = await open(options, folder);
      return {
        ...next,
        close: async () => {
          await publishing.stop();
          await next.close();
        },
      };
    },
    async close() {
      await publishing.stop();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return stage;
}

/** Polls until `look` finds something. */
export async function until<T>(
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  for (let waited = 0; waited < WAIT_LIMIT_MS; waited += 5) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error("waited in vain");
}
