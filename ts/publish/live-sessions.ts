// Running publish sessions as an operator views and controls them: list, show, kick, upstreams while live.
import { randomUUID } from "node:crypto";
import { InvalidValue, TooManyRequests, UnknownUpstream, WrongUpstreamState } from "../errors.ts";
import type { Protocol } from "../media/protocols.ts";
import type { Media, PlayerStatus, PublishSnapshot, PublishTracks, UpstreamStatus, WhipDiagnostics } from "../media.ts";
import { resolveBySystem } from "./addresses/address-guard.ts";
import type { Resolve } from "./addresses/resolver.ts";
import { limitOf } from "./bitrate-limit.ts";
import type { Ending } from "./ending/ending.ts";
import type { Publishing } from "./lifecycle.ts";
import type { Finding } from "./monitoring/health.ts";
import type { RunningPublish } from "./publishes.ts";
import type { Intent } from "./record.ts";
import { upstreamWithoutAac, withoutAac } from "./transcoder-error.ts";
import { coreUpstream, type StoredUpstream, type UpstreamNames } from "./upstreams/deployment-upstreams.ts";
import { checkUpstreamUrl, maskedKey, maskedText } from "./upstreams/upstream-url.ts";

/** One upstream of a running publish. */
export interface LiveUpstream extends UpstreamStatus, UpstreamNames {
  /** Why it gets no audio unless it accepts Opus, in words; null when there is no problem. */
  readonly audioError: string | null;
}

/** One running publish session of an organisation. */
export interface LiveSession {
  readonly clientId: number;
  readonly organisationId: string;
  readonly streamId: string;
  /** Stream name without arguments. */
  readonly name: string;
  readonly protocol: Protocol;
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Epoch ms. */
  readonly acceptedAt: number;
  /** Newest packet timestamp on the publisher's clock, ms. */
  readonly timestampMs: number;
  /** Audio and video payload bytes from the broadcaster (W8). */
  readonly bytesIn: number;
  /** Audio and video payload bytes sent to all upstreams and players (W8). */
  readonly bytesOut: number;
  readonly droppedFrames: number;
  /** Players and pushes that read it at present. */
  readonly subscribers: number;
  /** Its tracks, as far as they are known. */
  readonly tracks: PublishTracks;
  readonly upstreams: readonly LiveUpstream[];
  /** Why its audio is not transcoded to AAC although a reader needs that, and the consequence, in words; null when
   *  there is no problem. */
  readonly transcoderError: string | null;
  /** What was irregular about the broadcaster's media and was tolerated, repaired or left out. */
  readonly irregularities: PublishSnapshot["irregularities"];
  /** What is wrong with it, the worst first, at its last reading. */
  readonly findings: readonly Finding[];
  /** The bitrate its sender was asked to stay below, kbit/s; 0: no limit, or RTMP, which cannot ask. */
  readonly maxBitrateKbps: number;
  /** The lost publish whose upstreams and players it took over; null for none. */
  readonly continues: number | null;
  /** Whether it was published as the backup of its stream. */
  readonly backup: boolean;
  /** Whether upstreams and players receive it; false: it is on standby. */
  readonly onAir: boolean;
  /** Measurements of the WebRTC transport; absent for RTMP and in the first second. */
  readonly diagnostics?: WhipDiagnostics;
}

export type UpstreamChange =
  | { readonly added: StoredUpstream }
  | { readonly removed: string }
  | { readonly paused: string }
  | { readonly resumed: string };

/** How long an upstream waits after an attempt before it can be told to try at once, ms. */
export const RETRY_PAUSE_MS = 2_000;

export interface LiveSessions extends Pick<Publishing, "switchTarget" | "switchTo"> {
  /** At most `quantity` running sessions, by client id, starting after `after`; only their counters are read. `isMeant`
   *  selects the streams. */
  list(
    organisationId: string,
    page: { readonly after: number; readonly quantity: number; readonly isMeant: (streamId: string) => boolean },
  ): LiveSession[];
  /** Its players, oldest first, at most a thousand. */
  players(session: LiveSession): readonly PlayerStatus[];
  /** Undefined when no such publish runs or it belongs to another organisation. */
  show(organisationId: string, clientId: number): LiveSession | undefined;
  /** Ends the publish, or that of a stream; false when none runs. */
  kick(
    organisationId: string,
    meant: { readonly clientId: number } | { readonly streamId: string },
    ending: Ending,
  ): boolean;
  /** Pushes the running publish to one more upstream until it ends or the upstream is removed. Resolves to false when
   *  it does not run. Rejects with `InvalidValue` for a URL that may not be used (W21). `record` is awaited once the URL
   *  is accepted and before anything is pushed; if it rejects, so does this, and nothing is pushed. */
  addUpstream(
    organisationId: string,
    clientId: number,
    wanted: { readonly url: string; readonly label: string | null },
    record: () => Promise<void>,
  ): Promise<boolean>;
  /** `id`: as `show` returns it. The operator's upstreams cannot be removed. */
  removeUpstream(organisationId: string, clientId: number, id: string): "removed" | "unknown" | "operators";
  /** Asks the sender to stay below `kbps`; 0 removes the session's own limit, while the organisation's still
   *  applies. */
  limitBitrate(organisationId: string, clientId: number, kbps: number): "limited" | "cannot_be_limited" | "not_running";
  /** Applies a change of the stream's stored upstreams to its running publish. `removed`, `paused`, `resumed`: an id. */
  followStream(organisationId: string, streamId: string, change: UpstreamChange): void;
  /** Lets an upstream of the stream's running publish that waits for its next attempt try at once. Throws `UnknownUpstream`,
   *  `WrongUpstreamState` when it does not wait, and `TooManyRequests` within `RETRY_PAUSE_MS` of its latest attempt. */
  retryUpstream(organisationId: string, streamId: string, id: string): LiveUpstream;
  /** State of the upstreams of the stream's running publish; empty when none runs. */
  upstreamsOf(organisationId: string, streamId: string): readonly LiveUpstream[];
}

export function createLiveSessions(deps: {
  readonly publishing: Pick<Publishing, "running" | "find" | "ofStream" | "kick" | "switchTarget" | "switchTo">;
  readonly media: () => Pick<
    Media,
    "snapshot" | "players" | "whipDiagnostics" | "addUpstream" | "removeUpstream" | "orderPush" | "limitWhipBitrate"
  >;
  /** Epoch ms. */
  readonly clock: { now(): number };
  /** What is wrong with a publish, by client id. */
  readonly findingsOf: (clientId: number) => readonly Finding[];
  /** Allows private addresses for upstreams. */
  readonly dev: boolean;
  /** Resolves the hosts of upstreams; by default with the system's resolver. */
  readonly resolve?: Resolve;
}): LiveSessions {
  const { publishing, media, clock, findingsOf, dev, resolve = resolveBySystem } = deps;

  return {
    list(organisationId, { after, quantity, isMeant }) {
      const mine = publishing
        .running()
        .filter(isOf(organisationId))
        .filter((of) => of.clientId > after);
      const meant = mine.filter(({ intent }) => isMeant(intent.streamId));
      return meant
        .sort((a, b) => a.clientId - b.clientId)
        .slice(0, quantity)
        .map(show);
    },
    show(organisationId, clientId) {
      const publish = find(organisationId, clientId);
      return publish && show(publish);
    },
    switchTarget: publishing.switchTarget,
    switchTo: publishing.switchTo,
    // Publish and backup share their players.
    players: ({ clientId, onAir }) => (onAir ? media().players(clientId) : []),
    kick(organisationId, meant, ending) {
      const isMeant = ({ clientId, streamId }: Intent) =>
        "clientId" in meant ? clientId === meant.clientId : streamId === meant.streamId;
      return publishing.kick(({ intent }) => intent.organisationId === organisationId && isMeant(intent), ending);
    },
    async addUpstream(organisationId, clientId, { url, label }, record) {
      if (find(organisationId, clientId) === undefined) return false;
      const refusal = await checkUpstreamUrl(url, { dev, owner: organisationId, resolve });
      if (refusal !== null) throw new InvalidValue("url", refusal.reason);
      await record();
      // It may have ended meanwhile.
      const publish = find(organisationId, clientId);
      if (publish === undefined) return false;
      const id = randomUUID();
      const outcome = media().addUpstream(clientId, { id, url, source: "session" });
      if (outcome === "added") remember(publish, { id, url, label });
      if (outcome === "too_many") throw new InvalidValue("url", "exceeds the limit of upstreams per publish");
      return outcome === "added";
    },
    removeUpstream(organisationId, clientId, id) {
      const publish = find(organisationId, clientId);
      const upstreams = (publish && media().snapshot(clientId))?.upstreams ?? [];
      const upstream = upstreams.find((of) => of.id === id);
      if (upstream === undefined) return "unknown";
      if (upstream.source === "deployment") return "operators";
      return media().removeUpstream(clientId, id) ? "removed" : "unknown";
    },
    limitBitrate(organisationId, clientId, kbps) {
      const publish = find(organisationId, clientId);
      if (publish === undefined) return "not_running";
      if (publish.protocol === "rtmp") return "cannot_be_limited";
      publish.ownLimitKbps = kbps;
      return media().limitWhipBitrate(clientId, limitOf(publish)) ? "limited" : "not_running";
    },
    followStream(organisationId, streamId, change) {
      const publish = publishing.ofStream(organisationId, streamId);
      if (publish === undefined) return;
      // An upstream beyond the limit of a running publish is used from the next publish on.
      const { clientId } = publish;
      if ("added" in change) {
        media().addUpstream(clientId, coreUpstream(change.added));
        remember(publish, change.added);
      } else if ("removed" in change) media().removeUpstream(clientId, change.removed);
      else if ("paused" in change) media().orderPush(clientId, change.paused, "pause");
      else media().orderPush(clientId, change.resumed, "resume");
    },
    retryUpstream(organisationId, streamId, id) {
      const publish = publishing.ofStream(organisationId, streamId);
      const upstream = publish && show(publish).upstreams.find((of) => of.id === id);
      if (publish === undefined || upstream === undefined) throw new UnknownUpstream();
      const { state, since } = upstream;
      if (state !== "waiting" && state !== "refused")
        throw new WrongUpstreamState(`The upstream does not wait for its next attempt: it is ${state}`);
      const earlyMs = since + RETRY_PAUSE_MS - clock.now();
      if (earlyMs > 0) throw new TooManyRequests(Math.ceil(earlyMs / 1_000));
      media().orderPush(publish.clientId, id, "retry");
      return { ...upstream, state: "connecting" };
    },
    upstreamsOf(organisationId, streamId) {
      const publish = publishing.ofStream(organisationId, streamId);
      return publish === undefined ? [] : show(publish).upstreams;
    },
  };

  function find(organisationId: string, clientId: number): RunningPublish | undefined {
    const publish = publishing.find(clientId);
    return publish !== undefined && isOf(organisationId)(publish) ? publish : undefined;
  }

  function show(publish: RunningPublish): LiveSession {
    const { clientId, intent, protocol, acceptedAt, continues, onAir } = publish;
    const { organisationId, streamId, name, address, backup } = intent;
    const maxBitrateKbps = limitOf(publish);
    const who = { clientId, organisationId, streamId, name, protocol, address, continues, backup, onAir };
    const identity = { ...who, acceptedAt, maxBitrateKbps, findings: findingsOf(clientId) };
    const snapshot = media().snapshot(clientId);
    if (snapshot === null) return { ...identity, ...NOTHING_YET };
    const { timestampMs, bytesIn, bytesOut, droppedFrames, subscribers, tracks, irregularities } = snapshot;
    const { transcoderError: reason } = snapshot;
    const counters = { timestampMs, bytesIn, bytesOut, droppedFrames, subscribers, tracks, irregularities };
    const transcoderError = reason === null ? null : withoutAac(reason);
    const audioError = reason === null ? null : upstreamWithoutAac(reason);
    const upstreams = snapshot.upstreams.map((of) => ({
      ...of,
      ...namesOf(publish, of),
      audioError,
    }));
    const session = { ...identity, onAir: snapshot.onAir, ...counters, upstreams, transcoderError };
    const diagnostics = protocol === "whip" ? media().whipDiagnostics(clientId) : null;
    if (diagnostics === null) return session;
    const problems = [...diagnostics.problems, ...(transcoderError === null ? [] : [transcoderError])];
    return { ...session, diagnostics: { ...diagnostics, problems } };
  }
}

function remember(publish: RunningPublish, { id, url, label }: Omit<StoredUpstream, "paused">): void {
  publish.addedUpstreams.set(id, { label, maskedKey: maskedKey(url) });
}

function namesOf(publish: RunningPublish, { id, source }: UpstreamStatus): UpstreamNames {
  const later = publish.addedUpstreams.get(id);
  if (later !== undefined) return later;
  const label = publish.upstreamLabels.get(id) ?? null;
  // The URL from a publish's own stream_url ends in the publish's own name.
  if (source === "own") return { label, maskedKey: maskedText(publish.intent.name) };
  return { label, maskedKey: maskedKey(publish.upstreams.find((of) => of.id === id)?.url ?? "") };
}

/** For a publish that the media core does not know yet, or no longer. */
const NOTHING_YET = {
  timestampMs: 0,
  bytesIn: 0,
  bytesOut: 0,
  droppedFrames: 0,
  subscribers: 0,
  tracks: { video: null, audio: null },
  upstreams: [],
  transcoderError: null,
  irregularities: [],
};

function isOf(organisationId: string): (publish: RunningPublish) => boolean {
  return ({ intent }) => intent.organisationId === organisationId;
}
