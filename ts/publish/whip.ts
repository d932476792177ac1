// WHIP publishes: from a judged request to an answer, and the session ids by which they are ended. Knows no HTTP type.
import { randomUUID } from "node:crypto";
import type { Media, OfferJudgement } from "../media.ts";
import { resolveUpstream, withoutBrackets } from "./address-guard.ts";
import { type Denied, denied } from "./denials.ts";
import type { Publishing } from "./lifecycle.ts";
import { utf8 } from "./stream-name.ts";
import { foreignUrl, readStreamUrl, type StreamUrlRules } from "./stream-url.ts";

/** The app a WHIP publish has in the webhook: `stream_url` ends in `/live` (P2). */
const APP = "live";
/** What a browser begins with: below this it starts with a small picture. And what it may rise to. kbit/s. */
const START_BITRATE_KBPS = 2_500;
const MAX_BITRATE_KBPS = 6_000;

export interface WhipRequest {
  /** Stream name with its arguments as decoded once, bytes. */
  readonly streamName: Uint8Array;
  readonly streamUrl: string;
  readonly offer: string;
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Host name the request came to: whatever it is, it means ourselves. */
  readonly requestHost: string;
  readonly stereo: boolean;
  /** bit/s. */
  readonly audioBitrate: number;
}

export type WhipOutcome =
  | {
      readonly outcome: "opened";
      readonly session: string;
      readonly clientId: number;
      readonly etag: string;
      readonly answer: string;
    }
  | Extract<OfferJudgement, { outcome: "refused" }>
  | { readonly outcome: "bad_stream_url" }
  | Denied;

export interface Whip {
  /** Judges, asks, opens, in this order: nothing is made before the customer said yes (P5). */
  open(request: WhipRequest): Promise<WhipOutcome>;
  /** Ends a session; false when there is none (any more). */
  end(session: string): boolean;
}

export function createWhip(deps: {
  readonly media: () => Media;
  readonly publishing: Pick<Publishing, "openWhip" | "endWhip" | "onEnded">;
  readonly rules: StreamUrlRules;
  /** Allows private addresses for a foreign stream_url. */
  readonly dev: boolean;
}): Whip {
  const { media, publishing, rules, dev } = deps;
  /** Client ids by the id in the session's URL, which is a capability: never logged. */
  const sessions = new Map<string, number>();

  return {
    async open(request) {
      const judged = media().judgeOffer(request.offer);
      if (judged.outcome === "refused") return judged;
      const { name, customArguments } = splitName(request.streamName);
      const text = utf8(name) ?? "";
      const ownHosts = [...rules.ownHosts, withoutBrackets(request.requestHost).toLowerCase()];
      const target = readStreamUrl(request.streamUrl, text, { ...rules, ownHosts });
      if (target.kind === "refused") return { outcome: "bad_stream_url" };
      let ownUpstream: string | null = null;
      if (target.kind === "foreign") {
        const argumentsText = customArguments === null ? null : utf8(customArguments);
        // A URL could only carry them altered (W2).
        if (customArguments !== null && argumentsText === null) {
          return denied("malformed_name", "Custom arguments are not UTF-8");
        }
        // A host that cannot be dialled is told like one that is not allowed.
        const addresses = await resolveUpstream(target.host, { exempt: dev });
        if (addresses.length === 0) return { outcome: "bad_stream_url" };
        ownUpstream = foreignUrl(target, text, argumentsText);
      }
      const asked = { app: APP, name, arguments: customArguments, address: request.address };
      const opened = await publishing.openWhip(asked, ({ clientId, intent, upstreams }) =>
        media().openWhip({
          clientId,
          name: intent.name,
          offer: request.offer,
          upstreams,
          ownUpstream,
          stereo: request.stereo,
          startBitrateKbps: START_BITRATE_KBPS,
          maxBitrateKbps: MAX_BITRATE_KBPS,
          audioBitrate: request.audioBitrate,
        }),
      );
      if (opened.outcome === "denied") return opened;
      const session = randomUUID();
      sessions.set(session, opened.clientId);
      publishing.onEnded(opened.clientId, () => sessions.delete(session));
      return {
        outcome: "opened",
        session,
        clientId: opened.clientId,
        etag: `"${randomUUID()}"`,
        answer: opened.answer,
      };
    },
    end(session) {
      const clientId = sessions.get(session);
      sessions.delete(session);
      return clientId !== undefined && publishing.endWhip(clientId);
    },
  };
}

/** Split at the first `?`; the bytes behind it are the custom arguments, untouched (P1). */
function splitName(streamName: Uint8Array): { name: Uint8Array; customArguments: Uint8Array | null } {
  const at = streamName.indexOf("?".charCodeAt(0));
  if (at === -1) return { name: streamName, customArguments: null };
  return { name: streamName.subarray(0, at), customArguments: streamName.subarray(at + 1) };
}
