// Notes denied publishes among the refusals: counted, logged and recorded.
import type { PublishEvents } from "../publish-events.ts";
import type { Refusals } from "../refusals/refusals.ts";

export function noteDenied(events: Pick<PublishEvents, "listen">, refusals: Pick<Refusals, "note">): void {
  events.listen((event) => {
    if (event.kind !== "denied") return;
    const { refusal, request } = event;
    const { name, address, protocol } = request;
    refusals.note({ ...refusal, request: "publish", reason: refusal.reason ?? refusal.cause, name, address, protocol });
  });
}
