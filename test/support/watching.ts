// A service without ports whose events a test reads; the test sets the clock and triggers the polls.
import { expect, vi } from "vitest";
import type { PublishSnapshot } from "../../ts/media.ts";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { type EventReader, readEvents } from "./event-reader.ts";
import { openStage, STREAM, type Stage, until } from "./publishing.ts";

export const VIDEO = { codec: "H264", width: 1_280, height: 720 };
const AUDIO = { codec: "Opus", sampleRate: 48_000, channels: 2 };
/** Id of the stream `STREAM`. */
export const ID = `stream ${STREAM}`;

type Headers = Readonly<Record<string, string>>;

export interface Watching {
  readonly stage: Stage;
  /** A readonly key of the first organisation. */
  readonly key: string;
  /** The readers opened so far. */
  readonly readers: EventReader[];
  keyOf(organisationId: string, scopeTag?: string | null): Promise<string>;
  ask(query?: string, headers?: Headers): Promise<Response>;
  open(query?: string, headers?: Headers, pace?: "quick" | "slow"): Promise<EventReader>;
  /** Advances the clock by a second and polls. */
  second(): Promise<void>;
  /** Polls so often that the permission of each reader has been checked again, which is due well within ten seconds. */
  tenSeconds(): Promise<void>;
  /** Starts a publish with video and audio; returns its client id. */
  live(name: string, counters?: Partial<PublishSnapshot>): Promise<number>;
  /** Resolves when the end of a publish is in the store. */
  ended(clientId: number): Promise<void>;
  close(): Promise<void>;
}

/** One organisation, `org1`, with the stream `STREAM` and no webhook. */
export async function openWatching(): Promise<Watching> {
  // Only the test triggers polls.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const env = { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  const stage = await openStage({ webhook: null, ca: null, env });
  const { db, clock, media, service } = stage;
  const readers: EventReader[] = [];
  const keyOf = async (organisationId: string, scopeTag: string | null = null) =>
    (await addApiKey(db, { organisationId, role: "readonly", now: clock.ms, scopeTag })).key;
  const key = await keyOf("org1");
  const ask = async (query = "", headers: Headers = { "x-service-apikey": key }) =>
    await service.app.request(`/organisation/events${query}`, { headers });
  return {
    stage,
    key,
    readers,
    keyOf,
    ask,
    async open(query, headers, pace) {
      const reader = readEvents(await ask(query, headers), pace);
      expect(reader.response.status).toBe(200);
      readers.push(reader);
      return reader;
    },
    async second() {
      clock.ms += 1_000;
      await service.events.poll();
    },
    async tenSeconds() {
      for (let polls = 0; polls < 9; polls += 1) await service.events.poll();
    },
    async live(name, counters) {
      const clientId = await stage.allowed(name);
      media.measure(clientId, { tracks: { video: VIDEO, audio: AUDIO }, ...counters });
      return clientId;
    },
    async ended(clientId) {
      const state = () => db.selectFrom("publish").select("state").where("client_id", "=", clientId).executeTakeFirst();
      await until(async () => (await state())?.state === "ended");
    },
    async close() {
      for (const reader of readers) await reader.close();
      await stage.close();
      vi.useRealTimers();
    },
  };
}
