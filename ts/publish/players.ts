// Decides who may play a live stream, here or on another node, and logs each player. Players that already play continue
// when the rule changes.

import type { Logger } from "pino";
import type { Capacity } from "../capacity/capacity.ts";
import { RecentMap } from "../limits/recent-map.ts";
import type { PlayEnded, PlayRequested, PullEnded, SourceWanted } from "../media/events.ts";
import type { PullSource } from "../media/plays.ts";
import type { Media } from "../media.ts";
import type { Metrics } from "../metrics.ts";
import { networkList } from "../network.ts";
import type { Customers } from "../organisation/customers.ts";
import type { OrganisationSettings } from "../organisation/settings.ts";
import type { PlayTokenLack } from "../token/play-token.ts";
import type { PulledBytes } from "./bytes/pulled-bytes.ts";
import { denied } from "./denials.ts";
import type { WrongNames } from "./limits/wrong-names.ts";
import { type Intent, identityOf } from "./record.ts";
import type { RefusalReason } from "./refusals/reasons.ts";
import type { Refusals } from "./refusals/refusals.ts";

/** Organisations whose rule is kept for when the store cannot be read; the one read first is evicted first. */
const REMEMBERED_LIMIT = 10_000;

type PlayRule = Pick<OrganisationSettings, "play" | "play_addresses">;

const TOKEN_REQUIRED = { code: "denied", description: "A play token for this stream is required" } as const;

/** Why a player is refused, and the text it receives. */
const REFUSALS = {
  not_live: { code: "bad_name", description: "No such stream" },
  too_many_names: denied("too_many_names"),
  address: { code: "denied", description: "This address may not play the stream" },
  token_required: TOKEN_REQUIRED,
  token_invalid: TOKEN_REQUIRED,
  token_expired: TOKEN_REQUIRED,
  token_revoked: TOKEN_REQUIRED,
  token_of_another_stream: TOKEN_REQUIRED,
  full: { code: "denied", description: "This server is full; try again in a moment" },
  internal_error: { code: "denied", description: "Internal error" },
} as const satisfies { readonly [reason in RefusalReason]?: unknown };

type Cause = keyof typeof REFUSALS;

/** A stream that is live on another node. */
export interface ElsewhereLive extends PullSource {
  readonly organisationId: string;
  readonly streamId: string;
}

/** The other nodes of the service. */
export interface OtherNodes {
  /** The other node where a stream is live that is not live here; null: none. Called for each play of a name that is
   *  not live here, whether such a stream exists or not, and when a pull has lost its connection. */
  readonly elsewhere: (name: string) => Promise<ElsewhereLive | null>;
  /** Whether a play comes from another node of this service: `arguments` as the player sent them, including
   *  `NODE_ARGUMENT`. */
  readonly isNode: (name: string, customArguments: Uint8Array | null) => boolean;
}

/** The argument by which one node authenticates to another. A play that carries it is served only from a publish of
 *  this node, whether it is valid or not, so that no node pulls what another pulls. */
export const NODE_ARGUMENT = "headgate-node";

export const NO_OTHER_NODES: OtherNodes = { elsewhere: async () => null, isNode: () => false };

export interface PlayersDeps extends OtherNodes {
  readonly media: () => Pick<Media, "allowPlay" | "pull" | "dialPull" | "deny">;
  /** The publish that runs under a client id; null when none does. */
  readonly publishOf: (clientId: number) => Intent | null;
  readonly customers: Pick<Customers, "of">;
  readonly playTokenLack: PlayTokenLack;
  /** Networks that may play; empty allows all. */
  readonly playAllow: readonly string[];
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "countPullEnd">;
  readonly refusals: Pick<Refusals, "note">;
  /** Whose stream has this name; null for none. */
  readonly organisationOf: (name: string) => Promise<string | null>;
  /** Slows those who guess names. */
  readonly wrongNames: WrongNames;
  readonly pulledBytes: Pick<PulledBytes, "ended">;
  /** Whether this node has room; null where capacity is not measured. */
  readonly room: Pick<Capacity, "refusal"> | null;
}

/** The live stream with the name that a player requested. */
interface Live extends Pick<Intent, "clientId" | "organisationId" | "streamId"> {
  readonly name: string;
  /** Where it is pulled from; null: it is published here. */
  readonly source: PullSource | null;
}

type Decision =
  | { readonly live: Live; readonly cause: null }
  | { /** As far as it is known. */ readonly live: Live | null; readonly cause: Cause };

export class Players {
  readonly #deps: PlayersDeps;
  readonly #mayPlayAnything: (address: string) => boolean;
  readonly #playing = new Map<number, { readonly startedAt: number; readonly identity: object }>();
  readonly #rules = new RecentMap<string, PlayRule>(REMEMBERED_LIMIT);

  constructor(deps: PlayersDeps) {
    this.#deps = deps;
    this.#mayPlayAnything = deps.playAllow.length === 0 ? () => true : networkList(deps.playAllow);
  }

  /** Handles an event about players or pulls; every request is answered. Never rejects. */
  async handle(event: PlayRequested | PlayEnded | SourceWanted | PullEnded): Promise<void> {
    switch (event.kind) {
      case "play_requested":
        return await this.#ask(event);
      case "play_ended":
        return this.#end(event);
      case "source_wanted":
        return await this.#locate(event);
      case "pull_ended": {
        const { clientId, reason, detail, bytesIn, bytesOut } = event;
        this.#deps.metrics.countPullEnd(bytesOut);
        this.#deps.log.info({ clientId, reason, detail, bytesIn, bytesOut }, "pull ended");
        return await this.#deps.pulledBytes.ended(event);
      }
    }
  }

  /** null when nothing of that name is live. */
  async #liveOf(event: PlayRequested): Promise<Live | null> {
    if (event.clientId !== null) {
      const publish = this.#deps.publishOf(event.clientId);
      return publish && { ...publish, source: null };
    }
    if (carriesNodeArgument(event.arguments)) return null;
    const name = nameOf(event);
    const live = await this.#deps.elsewhere(name);
    if (live === null) return null;
    const { organisationId, streamId, clientId, url, address } = live;
    return { name, organisationId, streamId, clientId, source: { clientId, url, address } };
  }

  async #refusalOf(event: PlayRequested, live: Live): Promise<Cause | null> {
    if (!this.#mayPlayAnything(event.address)) return "address";
    const rule = await this.#ruleOf(live.organisationId);
    switch (rule.play) {
      case "open":
        return null;
      case "addresses":
        return networkList(rule.play_addresses)(event.address) ? null : "address";
      case "token":
        return await this.#deps.playTokenLack(event.arguments, live.name);
    }
  }

  /** The current rule; while the store cannot be read, the last known one, so that a store failure does not stop
   *  players. */
  async #ruleOf(organisationId: string): Promise<PlayRule> {
    try {
      const { settings } = await this.#deps.customers.of(organisationId);
      this.#rules.set(organisationId, settings);
      return settings;
    } catch (error) {
      const last = this.#rules.get(organisationId);
      if (last === undefined) throw error;
      return last;
    }
  }

  /** Notes whether a stream has this name. Of one that is not live only the store knows; while it fails, nobody does. */
  async #noteName(name: string, address: string, isLive: boolean): Promise<void> {
    const owner = isLive ? name : await this.#deps.organisationOf(name).catch(() => name);
    if (owner === null) this.#deps.wrongNames.wrong(address, name);
    else this.#deps.wrongNames.right(address, name);
  }

  async #decide(event: PlayRequested, isNode: boolean): Promise<Decision> {
    const name = nameOf(event);
    const waitS = isNode ? null : this.#deps.wrongNames.waitS(event.address, name);
    if (waitS !== null) return { live: null, cause: "too_many_names" };
    const live = await this.#liveOf(event);
    if (!isNode) await this.#noteName(name, event.address, live !== null);
    if (live === null) return { live, cause: "not_live" };
    const refused = isNode ? null : this.#deps.room?.refusal() ? "full" : await this.#refusalOf(event, live);
    return refused === null ? { live, cause: null } : { live, cause: refused };
  }

  async #ask(event: PlayRequested): Promise<void> {
    const { request, address } = event;
    let live: Live | null = null;
    let identity: object = { player: request, address };
    // The players of another node were admitted there.
    const isNode = carriesNodeArgument(event.arguments) && this.#deps.isNode(nameOf(event), event.arguments);
    let cause: Cause;
    try {
      const decision = await this.#decide(event, isNode);
      live = decision.live;
      if (live !== null) identity = { ...identityOf(live), ...identity, ...(isNode && { node: true }) };
      if (decision.cause === null) return this.#start(request, decision.live.source, { counted: !isNode }, identity);
      cause = decision.cause;
    } catch (err) {
      this.#deps.log.error({ err, ...identity }, "play request could not be decided");
      cause = "internal_error";
    }
    this.#deps.media().deny(request, REFUSALS[cause]);
    const about = live === null ? {} : { organisation: live.organisationId, stream: live.streamId };
    const { description } = REFUSALS[cause];
    const { name } = event;
    this.#deps.refusals.note({
      request: "play",
      protocol: "rtmp",
      reason: cause,
      name,
      address,
      description,
      about,
      inLog: identity,
      isRecorded: isNode,
    });
  }

  #start(request: number, source: PullSource | null, options: { readonly counted: boolean }, identity: object): void {
    // Recorded before the core is told: the end may arrive in the same turn of the event loop.
    this.#playing.set(request, { startedAt: this.#deps.clock.now(), identity });
    try {
      if (source === null) this.#deps.media().allowPlay(request, options);
      else this.#deps.media().pull(request, source);
    } catch (error) {
      this.#playing.delete(request);
      throw error;
    }
    this.#deps.log.info({ ...identity, ...(source && { source: source.address }) }, "player started");
  }

  #end({ player, bytesOut, droppedFrames }: PlayEnded): void {
    const known = this.#playing.get(player);
    this.#playing.delete(player);
    const seconds = known && Math.floor((this.#deps.clock.now() - known.startedAt) / 1_000);
    this.#deps.log.info({ ...(known?.identity ?? { player }), seconds, bytesOut, droppedFrames }, "player ended");
  }

  /** A pull lost its connection. Without an answer it ends when its players have waited long enough. */
  async #locate({ pull, clientId, ...event }: SourceWanted): Promise<void> {
    try {
      const live = await this.#deps.elsewhere(nameOf(event));
      const isSame = live?.clientId === clientId;
      this.#deps.media().dialPull(pull, isSame ? { clientId, url: live.url, address: live.address } : null);
    } catch (err) {
      this.#deps.log.error({ err, clientId }, "source of a pull could not be found");
    }
  }
}

const nameOf = ({ name }: { readonly name: Uint8Array }) => Buffer.from(name).toString();

function carriesNodeArgument(customArguments: Uint8Array | null): boolean {
  return new URLSearchParams(Buffer.from(customArguments ?? []).toString("latin1")).has(NODE_ARGUMENT);
}
