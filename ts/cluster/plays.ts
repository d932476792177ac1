// Plays between nodes: where a stream of another node is pulled from, and how a node authenticates as such when it
// plays.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { withoutBrackets } from "../network.ts";
import type { Owned, Owners } from "./owners.ts";
import { CallVerifier, signCall } from "./signature.ts";

/** A play in the form of a signed call, for this name. */
const callOf = (name: string) => ({ method: "PLAY", target: name, body: new Uint8Array(), client: "" });

export interface Plays {
  /** Where the stream of a name is pulled from; null: no other node has it. */
  elsewhere(name: string): Promise<PulledFrom | null>;
  /** Whether the player is a node of this service. */
  isNode(name: string, customArguments: Uint8Array | null): boolean;
}

export interface PulledFrom extends Pick<Owned, "clientId" | "organisationId" | "streamId"> {
  /** Includes the argument that authenticates the play. */
  readonly url: string;
  /** IP address. */
  readonly address: string;
}

/** `key`: the secret that the nodes share; `argument`: name of the argument that carries the signature; `now`: on the
 *  store's clock. */
export function createPlays(deps: {
  readonly owners: Pick<Owners, "ofName">;
  readonly key: Uint8Array;
  readonly argument: string;
  readonly now: () => number;
}): Plays {
  const { owners, key, argument, now } = deps;
  const verifier = new CallVerifier(key);
  return {
    async elsewhere(name) {
      const owned = await owners.ofName(name);
      const { channel = null, rtmp = null, pullPort = null } = owned?.node ?? {};
      const port = pullPort ?? (rtmp === null ? null : new URL(rtmp).port || "1935");
      if (owned === null || channel === null || port === null) return null;
      // The address by which nodes reach each other; the one for clients may be a load balancer's.
      const host = withoutBrackets(new URL(channel).hostname);
      const address = isIP(host) === 0 ? (await lookup(host)).address : host;
      const at = `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
      const url = `rtmp://${at}/live/${name}?${argument}=${signCall(key, callOf(name), now())}`;
      const { clientId, organisationId, streamId } = owned;
      return { clientId, organisationId, streamId, url, address };
    },
    isNode(name, customArguments) {
      const given = new URLSearchParams(Buffer.from(customArguments ?? []).toString("latin1")).get(argument);
      return verifier.holds(given ?? undefined, callOf(name), now());
    },
  };
}
