// Notes denied publishes among the refusals, and RTMP connections that were refused before they named a stream.
import type { PublishEvents } from "../publish-events.ts";
import type { Refusals } from "../refusals/refusals.ts";

export function noteDenied(events: Pick<PublishEvents, "listen">, refusals: Pick<Refusals, "note">): void {
  events.listen((event) => {
    if (event.kind === "connection_refused") {
      const { address, code, detail } = event;
      const about = { request: "publish", protocol: "rtmp", reason: "connection_refused", name: null } as const;
      return refusals.note({ ...about, address, description: `${code}: ${detail}`, isCounted: true });
    }
    if (event.kind !== "denied") return;
    const { refusal, request } = event;
    const { name, address, protocol } = request;
    refusals.note({ ...refusal, request: "publish", reason: refusal.reason ?? refusal.cause, name, address, protocol });
  });
}
