// Doctor: the addresses to which browsers send media.
import { createSocket } from "node:dgram";
import { networkInterfaces } from "node:os";
import type { Config } from "../../config.ts";
import { type Finding, good } from "./finding.ts";

/** How long a datagram to ourselves may take, ms: it passes one router. */
const ECHO_LIMIT_MS = 1_000;
const PRIVATE = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|127\.|f[cd]|fe80|::1)/i;

/** A router's address is tested with a datagram to ourselves; whether it is reachable from the Internet can only be
 *  tested from outside. */
export async function mediaAddresses(config: Config): Promise<Finding> {
  const what = "addresses of media";
  const why = "browsers send audio and video to the addresses in the WHIP answer, and to no others";
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const said = config.media.publicAddresses;
  const announced = said.length > 0 ? said : own.filter(({ internal }) => !internal).map(({ address }) => address);
  const remedy = "set media.public_addresses to the address at which broadcasters reach this machine";
  if (announced.length === 0) {
    return { what, state: "bad", detail: "this machine has none: set media.public_addresses", why, remedy };
  }
  if (announced.every((address) => PRIVATE.test(address))) {
    const detail = `${announced.join(", ")}: reachable only from this network; set media.public_addresses`;
    return { what, state: "warning", detail, why, remedy };
  }
  const others = announced.filter((address) => !own.some((each) => each.address === address));
  const silent = [];
  for (const address of others) if (!(await comesBack(config, address))) silent.push(address);
  if (silent.length === 0) return good(what, announced.join(", "));
  const port = config.media.port === 0 ? "the media ports" : `UDP port ${config.media.port}`;
  const detail = `${silent.join(", ")} is not an address of this machine, and a datagram sent to it did not arrive here: forward ${port} to this machine (a router without NAT loopback also drops the datagram)`;
  return {
    what,
    state: "warning",
    detail,
    why,
    remedy: `forward ${port} and the next ones, one per media worker, UDP and TCP`,
  };
}

/** Whether a datagram to our media port through `address` arrives here. Also false while a service has the port. */
async function comesBack(config: Config, address: string): Promise<boolean> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  const arrived = new Promise<boolean>((resolve) => {
    setTimeout(() => resolve(false), ECHO_LIMIT_MS);
    socket.on("error", () => resolve(false)).on("message", () => resolve(true));
    socket.bind(config.media.port, () => {
      socket.send("headgate doctor", socket.address().port, address, (error) => error && resolve(false));
    });
  });
  return await arrived.finally(() => socket.close());
}
