// IP addresses and networks: membership, and the network by which clients are counted.
import { BlockList, isIP, isIPv6 } from "node:net";

/** Whether this is an IP address, or a network such as `10.0.0.0/8`. */
export function isNetwork(value: string): boolean {
  const [address = "", prefix, ...rest] = value.split("/");
  const bits = isIP(address) === 4 ? 32 : 128;
  if (isIP(address) === 0 || rest.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
}

/** Returns a test of whether an IP address belongs to one of these addresses and networks. */
export function networkList(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return (address) => {
    const plain = withoutMapping(address);
    return isIP(plain) !== 0 && list.check(plain, familyOf(plain));
  };
}

/** An IPv4-mapped address of a dual-stack socket as plain IPv4. */
export function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");
}

const familyOf = (address: string) => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** An IPv6 client usually has a whole /64, so it is counted by that. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail = ""] = address.toLowerCase().split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const last = tail.split(":").filter((group) => group !== "");
  const missing = Math.max(0, 8 - groups.length - last.length);
  const whole = address.includes("::") ? [...groups, ...Array<string>(missing).fill("0"), ...last] : groups;
  return `${whole
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}

/** `::1` as sockets use it → `[::1]` as URLs write it. */
export function withBrackets(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** `[::1]` as URLs write it → `::1` as sockets use it. */
export function withoutBrackets(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}
