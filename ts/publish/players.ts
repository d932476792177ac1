// Who may play a live stream, and what the log says of each player. What plays already goes on when the rule changes.
import type { Logger } from "pino";
import type { PlayEnded, PlayRequested } from "../media/events.ts";
import type { Media } from "../media.ts";
import { networkList } from "../network.ts";
import type { Customers } from "../organisation/customers.ts";
import type { OrganisationSettings } from "../organisation/settings.ts";
import type { HoldsPlayToken } from "../token/play-token.ts";
import { type Intent, identityOf } from "./record.ts";

/** Organisations whose rule is remembered for while the store cannot be read; the one that was read first goes. */
const REMEMBERED_LIMIT = 10_000;

type PlayRule = Pick<OrganisationSettings, "play" | "play_addresses">;

/** Why a player is refused, and what it is told. */
const REFUSALS = {
  not_live: { code: "bad_name", description: "No such stream" },
  address: { code: "denied", description: "This address may not play the stream" },
  token_required: { code: "denied", description: "A play token for this stream is required" },
  internal_error: { code: "denied", description: "Internal error" },
} as const;

export interface PlayersDeps {
  readonly media: () => Pick<Media, "allowPlay" | "deny">;
  /** The publish that runs under a client id; null when none does. */
  readonly publishOf: (clientId: number) => Intent | null;
  readonly customers: Pick<Customers, "of">;
  readonly holdsPlayToken: HoldsPlayToken;
  /** Networks that may play anything at all; empty for all. */
  readonly playAllow: readonly string[];
  readonly clock: { now(): number };
  readonly log: Logger;
}

export interface Players {
  /** Answers a player. Never rejects. */
  ask(event: PlayRequested): Promise<void>;
  /** A player that was allowed is gone. */
  end(event: PlayEnded): void;
}

export function createPlayers(deps: PlayersDeps): Players {
  const { clock, log } = deps;
  const mayPlayAnything = deps.playAllow.length === 0 ? () => true : networkList(deps.playAllow);
  const playing = new Map<number, { readonly startedAt: number; readonly identity: object }>();
  const rules = new Map<string, PlayRule>();

  async function refusalOf(event: PlayRequested, publish: Intent): Promise<keyof typeof REFUSALS | null> {
    if (!mayPlayAnything(event.address)) return "address";
    const rule = await ruleOf(publish.organisationId);
    switch (rule.play) {
      case "open":
        return null;
      case "addresses":
        return networkList(rule.play_addresses)(event.address) ? null : "address";
      case "token":
        return (await deps.holdsPlayToken(event.arguments, publish.name)) ? null : "token_required";
    }
  }

  /** As it is now; as it last was while the store cannot be read, so that its failure stops no players. */
  async function ruleOf(organisationId: string): Promise<PlayRule> {
    try {
      const { settings } = await deps.customers.of(organisationId);
      rules.delete(organisationId);
      if (rules.size >= REMEMBERED_LIMIT) rules.delete(rules.keys().next().value ?? "");
      rules.set(organisationId, settings);
      return settings;
    } catch (error) {
      const last = rules.get(organisationId);
      if (last === undefined) throw error;
      return last;
    }
  }

  return {
    async ask(event) {
      const { request, address } = event;
      const publish = deps.publishOf(event.clientId);
      if (publish === null) return deps.media().deny(request, REFUSALS.not_live);
      const identity = { ...identityOf(publish), player: request, address };
      let cause: keyof typeof REFUSALS | null;
      try {
        cause = await refusalOf(event, publish);
      } catch (err) {
        log.error({ err, ...identity }, "play request could not be decided");
        cause = "internal_error";
      }
      if (cause !== null) {
        log.info({ cause, ...identity }, "player denied");
        deps.media().deny(request, REFUSALS[cause]);
        return;
      }
      // Known before the core is told: the end may come in the same turn.
      playing.set(request, { startedAt: clock.now(), identity });
      log.info(identity, "player started");
      deps.media().allowPlay(request);
    },
    end({ player, bytesOut, droppedFrames }) {
      const known = playing.get(player);
      playing.delete(player);
      const seconds = known && Math.floor((clock.now() - known.startedAt) / 1_000);
      log.info({ ...(known?.identity ?? { player }), seconds, bytesOut, droppedFrames }, "player ended");
    },
  };
}
