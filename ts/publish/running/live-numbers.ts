// Numbers of what is running, for the operator's metrics.

import type { PullStatus } from "../../media/plays.ts";
import type { Protocol } from "../../media/protocols.ts";
import type { Media, PublishSnapshot } from "../../media.ts";

/** Sums over the running publishes and the pulls from other nodes; `bytesIn` and `bytesOut` are their totals so far.
 *  Media pulled from another node counts as received there, not here. */
export function liveNumbers(
  running: readonly { readonly clientId: number; readonly protocol: Protocol }[],
  media: () => Pick<Media, "snapshot" | "pulls">,
) {
  const snapshots: PublishSnapshot[] = [];
  const publishes = { rtmp: 0, whip: 0 };
  for (const { clientId, protocol } of running) {
    publishes[protocol] += 1;
    const snapshot = media().snapshot(clientId);
    if (snapshot !== null) snapshots.push(snapshot);
  }
  const pulls = media().pulls();
  const pulled = (of: (pull: PullStatus) => number) => pulls.reduce((total, each) => total + of(each), 0);
  const sum = (of: (snapshot: PublishSnapshot) => number) => snapshots.reduce((total, each) => total + of(each), 0);
  const upstreams = { connecting: 0, sending: 0, waiting: 0, refused: 0, paused: 0 };
  for (const { state } of snapshots.flatMap((snapshot) => snapshot.upstreams)) upstreams[state] += 1;
  return {
    publishes,
    // An upstream being pushed to is a subscriber like a player, so it is subtracted.
    players: Math.max(0, sum(({ subscribers }) => subscribers) - upstreams.sending) + pulled(({ players }) => players),
    pulls: pulls.length,
    upstreams,
    bytesIn: sum(({ bytesIn }) => bytesIn),
    bytesOut: sum(({ bytesOut }) => bytesOut) + pulled(({ bytesOut }) => bytesOut),
  };
}
