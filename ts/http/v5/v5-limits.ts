// The path of the v5 socket, and the limits on its use by one client, one address and all together. It decides; it
// sends no responses.
import { networkOf } from "../../network.ts";

/** Where clients of the old signalling connect. */
export const V5_PATH = "/p/webrtcws";
/** Sockets of one address: a studio behind one router has a few dozen. */
const SOCKETS_PER_ADDRESS_LIMIT = 100;
/** Sockets in total; each is a file descriptor and some 30 kB. */
const SOCKETS_LIMIT = 5_000;
/** Messages of one socket: this many in a burst (a browser trickles its candidates), and after that this many
 *  a second. */
const MESSAGES_BURST = 100;
const MESSAGES_PER_SECOND = 20;

/** A counted socket. */
export interface V5Place {
  /** Whether another message is allowed at this moment. */
  admit(): boolean;
  release(): void;
}

/** Null when there are too many. */
export type AdmitSocket = (address: string) => V5Place | null;

export function createV5Limits(clock: { now(): number }): AdmitSocket {
  const open = new Map<string, number>();
  let total = 0;

  return (address) => {
    const network = networkOf(address);
    const ofNetwork = open.get(network) ?? 0;
    if (ofNetwork >= SOCKETS_PER_ADDRESS_LIMIT || total >= SOCKETS_LIMIT) return null;
    open.set(network, ofNetwork + 1);
    total += 1;
    let isReleased = false;
    let left = MESSAGES_BURST;
    let at = clock.now();
    return {
      admit() {
        const now = clock.now();
        left = Math.min(MESSAGES_BURST, left + (Math.max(0, now - at) / 1_000) * MESSAGES_PER_SECOND);
        at = now;
        if (left < 1) return false;
        left -= 1;
        return true;
      },
      release() {
        if (isReleased) return;
        isReleased = true;
        total -= 1;
        const rest = (open.get(network) ?? 1) - 1;
        if (rest > 0) open.set(network, rest);
        else open.delete(network);
      },
    };
  };
}
