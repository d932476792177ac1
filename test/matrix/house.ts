// Everything around the publisher of a cell: the customer who decides by stream name, Headgate, and an
// upstream that records what it receives. One house serves all cells of a run.
import { until } from "../support/child.ts";
import { type CustomerAnswer, type CustomerRequest, startCustomer } from "../support/customer.ts";
import { startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";

/** Interval of updates: the minimum. */
export const UPDATE_S = 5;

export interface House {
  /** The URL for publishers and players: `rtmp://…/live` */
  readonly rtmp: string;
  readonly upstream: NginxRtmp;
  newStream(): Promise<string>;
  /** Sets the customer's answer to publish requests of `name`. */
  decide(name: string, decision: () => Promise<CustomerAnswer> | CustomerAnswer): void;
  /** The customer's requests about this name, in order. */
  heard(name: string): readonly CustomerRequest[];
  /** The first of its requests with this `call`. */
  hears(name: string, call: string, limitMs?: number): Promise<CustomerRequest>;
  close(): Promise<void>;
}

export async function openHouse(): Promise<House> {
  const customer = await startCustomer();
  const upstream = await startNginxRtmp();
  const headgate = await startHeadgate({
    customer,
    env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`, HEADGATE_WEBHOOK_UPDATE_S: String(UPDATE_S) },
  });
  const decisions = new Map<string, () => Promise<CustomerAnswer> | CustomerAnswer>();
  customer.answer((request) => {
    const decision = request.call === "publish" ? decisions.get(nameOf(request)) : undefined;
    return decision?.() ?? { status: 200 };
  });
  const heard = (name: string) => customer.requests.filter((request) => nameOf(request) === name);
  return {
    rtmp: headgate.rtmp,
    upstream,
    newStream: headgate.newStream,
    decide: (name, decision) => void decisions.set(name, decision),
    heard,
    hears: (name, call, limitMs = 30_000) =>
      until(`${call} of ${name}`, () => heard(name).find((request) => request.call === call), limitMs),
    async close() {
      await headgate.stop();
      await upstream.stop();
      await customer.close();
    },
  };
}

/** The fixed fields follow the arguments. */
function nameOf(request: CustomerRequest): string {
  return new URLSearchParams(request.body).getAll("name").at(-1) ?? "";
}
