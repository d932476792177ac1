// The service as it is wired, without ports: a real store, a clock that tests set, and a media core that only records
// its calls. For tests of publishes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { pino } from "pino";
import type { Capacity } from "../../ts/capacity/capacity.ts";
import { type Config, loadConfig } from "../../ts/config.ts";
import type { EndReason } from "../../ts/media/codes.ts";
import { NO_MEDIA, type PublishEnded } from "../../ts/media/events.ts";
import type { Metrics } from "../../ts/metrics.ts";
import { changeSettings, type OrganisationSettings } from "../../ts/organisation/settings.ts";
import type { StreamUpstreams } from "../../ts/organisation/upstreams.ts";
import type { WebhookSecrets } from "../../ts/organisation/webhook-secret.ts";
import type { Resolve } from "../../ts/publish/addresses/resolver.ts";
import type { Publishing, PublishingDeps } from "../../ts/publish/lifecycle.ts";
import type { OtherNodes } from "../../ts/publish/players.ts";
import { createService, type Service } from "../../ts/service.ts";
import type { Schema, StreamState } from "../../ts/store/schema.ts";
import type { Tokens } from "../../ts/token/tokens.ts";
import { type Command, RecordingMedia } from "./recording-media.ts";
import { openTestStore } from "./stores.ts";

/** Limit of a wait before it fails the test, ms: far longer than a busy machine takes. */
const WAIT_LIMIT_MS = 25_000;

export interface Stage {
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  readonly media: RecordingMedia;
  readonly publishing: Publishing;
  readonly service: Service;
  readonly streamUpstreams: StreamUpstreams;
  /** Verifies the tokens that an organisation may require; a test may replace it. */
  readonly tokens: Tokens;
  readonly secrets: WebhookSecrets;
  readonly metrics: Metrics;
  /** Changes switches of the organisation. */
  change(settings: Partial<OrganisationSettings>): Promise<void>;
  /** Everything logged so far, as text. */
  log(): string;
  /** The given clock, which tests set. */
  readonly clock: { ms: number };
  /** Sends a publish request and returns the answer to the media core. */
  request(
    name: string,
    options?: { readonly arguments?: string | Buffer | null; readonly address?: string },
  ): Promise<Command>;
  /** Like `request`, without waiting; returns the request's number. */
  ask(name: string, options?: { readonly arguments?: string | Buffer | null; readonly address?: string }): number;
  answered(request: number): Promise<Command>;
  /** Sends a publish request that must be allowed; returns its client id. */
  allowed(name: string, options?: { readonly arguments?: string | Buffer | null }): Promise<number>;
  end(
    clientId: number,
    reason?: EndReason,
    counters?: Partial<Pick<PublishEnded, "bytesIn" | "bytesOut" | "videoFrames" | "droppedFrames">>,
    held?: boolean,
  ): void;
  /** Forgets the process and keeps the data, as after kill -9. The old publishing has no further effect. */
  crash(): Promise<Stage>;
  close(): Promise<void>;
}

export const STREAM = "Ab1Cd-9XyZ0";

export interface StageOptions {
  readonly webhook: string | null;
  readonly ca: string | null;
  readonly settings?: Partial<PublishingDeps["settings"]>;
  /** Other settings, by their HEADGATE_ names. */
  readonly env?: Readonly<Record<string, string>>;
  /** By default there are none. */
  readonly otherNodes?: OtherNodes;
  /** Resolves names; by default as the system does. */
  readonly resolve?: Resolve;
  /** Whether there is room; by default there always is. */
  readonly capacity?: Capacity;
}

/** One organisation with stream `STREAM`; by default updates every hour and a deadline of 2 s. */
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
  const service = await createService(configOf(options, folder), {
    db: store.db,
    reads: store.reads,
    clock: now,
    log: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
    media: () => media,
    ...(options.otherNodes && { otherNodes: options.otherNodes }),
    ...(options.resolve && { resolve: options.resolve }),
    ...(options.capacity && { openCapacity: () => options.capacity as Capacity }),
  });
  const { publishing, streamUpstreams, tokens, secrets, customers, metrics } = service;
  let requests = 0;
  const stage: Stage = {
    db: store.db,
    reads: store.reads,
    media,
    publishing,
    service,
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
      return until(() => media.commands.find((each) => "request" in each && each.request === request));
    },
    request(name, told) {
      return stage.answered(stage.ask(name, told));
    },
    async allowed(name, told) {
      const answer = await stage.request(name, told);
      if (answer.command !== "allow") throw new Error(`not allowed: ${JSON.stringify(answer)}`);
      return answer.clientId;
    },
    end(clientId, reason = "unpublished", counters = {}, held = false) {
      media.snapshots.delete(clientId);
      const all = { ...NO_MEDIA, ...counters };
      publishing.handle({ kind: "publish_ended", clientId, reason, ...all, held });
    },
    async crash() {
      await store.close();
      const next = await open(options, folder);
      return {
        ...next,
        close: async () => {
          await service.stop();
          await next.close();
        },
      };
    },
    async close() {
      await service.stop();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return stage;
}

function configOf({ ca, settings = {}, env }: StageOptions, folder: string): Config {
  const { config } = loadConfig({ env: { HEADGATE_DATA_DIR: folder, HEADGATE_WEBHOOK_DEADLINE_MS: "2000", ...env } });
  const { deadlineMs = config.webhook.deadlineMs } = settings;
  return {
    ...config,
    dev: settings.dev ?? true,
    webhook: { deadlineMs, updateS: settings.updateSeconds ?? 3_600, ca },
    upstream: { ...config.upstream, push: settings.upstreamPush ?? [] },
    play: { allow: settings.playAllow ?? [] },
    whip: { ...config.whip, maxBitrateKbps: settings.maxBitrateKbps ?? { all: 6_000, trial: 0 } },
    publish: {
      duplicate: settings.duplicate ?? "reject_if_active",
      holdSeconds: settings.holdSeconds ?? 10,
      backupArgument: "backup",
    },
  };
}

/** Polls until `look` finds something. */
export async function until<T>(
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  const deadline = performance.now() + WAIT_LIMIT_MS;
  while (performance.now() < deadline) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error("waited in vain");
}
