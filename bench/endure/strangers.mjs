// R16: datagrams from unknown ports at the media port while honest sessions are set up.
import { faultsWhere, load, startService } from "./_service.mjs";

export const title = "hellos, alerts, records and checks from unknown ports beside honest handshakes";

const HANDSHAKES = 1_000;
const AT_ONCE = 20;
/** Minimum of set-ups a second, each with a second of media; the attack lasts as long. */
const PER_SECOND = 10;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
export async function endure(share) {
  const handshakes = Math.max(20, Math.round(HANDSHAKES * share));
  const server = await startService(handshakes + 1);
  try {
    const [attacked, ...names] = server.names();
    const seconds = Math.round(handshakes / PER_SECOND);
    const where = [server.target, server.http, server.streamUrl];
    const [attack, honest] = await Promise.all([
      load("attack", "strangers", ...where, attacked, seconds, "127.0.0.1:0"),
      load("churn", ...where, names.join(","), handshakes, AT_ONCE, "delete"),
    ]);
    const { published, failed, failures } = honest;
    const figures = { datagrams: attack.messages, replies: attack.endings, published, failed, failures };
    const faults = faultsWhere({
      "strangers were answered": attack.endings.length > 0,
      "honest handshakes failed": failed > handshakes / 1_000,
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}
