// Reliability R3: peers that stop half-way, beside honest streams.
import { besideHonest, faultsWhere, load, startService } from "./_service.mjs";

export const title = "sessions that stop before ICE, DTLS, connect, createStream, publish";

const PEERS = 10_000;
const HONEST = 50;
const PER_SECOND = 160;
/** How long the last peer is watched, and how long before the first one the streams begin. */
const MARGIN_S = 25;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
export async function endure(share) {
  const peers = Math.max(60, Math.round(PEERS * share));
  const honest = Math.max(4, Math.round(HONEST * Math.min(1, share * 10)));
  const server = await startService(honest + 1_000 * Math.min(1, share * 10));
  try {
    const names = server.names().slice(honest).join(",");
    const { balance, other } = await besideHonest(
      server,
      server.streams.slice(0, honest),
      Math.round(peers / PER_SECOND) + MARGIN_S,
      () => load("half-open", server.target, server.http, server.streamUrl, names, peers),
    );
    const { whip, rtmp } = other;
    const figures = { whip, rtmp, honest, sent: balance.sent, lost: balance.lost };
    const faults = faultsWhere({
      "sessions are kept for more than 15 s": whip.kept > 0,
      "connections are kept for more than 10 s": rtmp.kept > 0,
      "peers were refused": whip.refused + rtmp.refused > 0,
      "honest streams lost units": balance.lost > 0 || balance.corrupt > 0,
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}
