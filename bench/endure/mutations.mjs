// R15: packets that no encoder produces, sent to a live session, beside honest streams.
import { besideHonest, faultsWhere, load, startService } from "./_service.mjs";

export const title = "a session of packets with flipped bits, truncated, repeated or malformed";

const PACKETS = 1_000_000;
const HONEST = 20;
/** Rate of the generator that leaves the honest streams enough of their core. */
const PER_SECOND = 10_000;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
export async function endure(share) {
  const honest = Math.max(4, Math.round(HONEST * Math.min(1, share * 10)));
  const seconds = Math.max(5, Math.round((PACKETS * share) / PER_SECOND));
  const server = await startService(honest + 1);
  try {
    const attacked = server.streams[honest].name;
    const { balance, other } = await besideHonest(server, server.streams.slice(0, honest), seconds, () =>
      load("attack", "mutations", server.target, server.http, server.streamUrl, attacked, seconds + 6, "127.0.0.1:0"),
    );
    const figures = { packets: other.messages, endings: other.endings, sent: balance.sent, lost: balance.lost };
    const faults = faultsWhere({
      "honest streams lost units": balance.lost > 0 || balance.corrupt > 0,
      "fewer packets than wanted": other.messages < PACKETS * share,
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}
