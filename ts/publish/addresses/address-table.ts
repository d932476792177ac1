// Which IP addresses the gateway may connect to when a customer names them. A table and one function, no I/O.
import ipaddr from "ipaddr.js";

/** IPv4 networks that are not the public Internet (IANA special-purpose registry, RFC 6890) or that answer with secrets. */
const REFUSED_IPV4: readonly (readonly [network: string, reason: string])[] = [
  ["0.0.0.0/8", "this network"],
  ["10.0.0.0/8", "private"],
  ["100.64.0.0/10", "carrier-grade NAT"],
  ["127.0.0.0/8", "loopback"],
  ["168.63.129.16/32", "cloud metadata"], // public by number, but every Azure machine's own control address
  ["169.254.0.0/16", "link-local"], // the metadata address 169.254.169.254 too
  ["172.16.0.0/12", "private"],
  ["192.0.0.0/24", "protocol assignment"],
  ["192.0.2.0/24", "documentation"],
  ["192.31.196.0/24", "AS112"],
  ["192.52.193.0/24", "AMT"],
  ["192.88.99.0/24", "6to4 relay"],
  ["192.168.0.0/16", "private"],
  ["192.175.48.0/24", "AS112"],
  ["198.18.0.0/15", "benchmarking"],
  ["198.51.100.0/24", "documentation"],
  ["203.0.113.0/24", "documentation"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
];

/** Parts of 2000::/3 that are refused. Everything outside 2000::/3 is refused as a whole: ::/8 with `::7f00:1` and
 *  mapped addresses, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, ULA, link-local, multicast. */
const REFUSED_IPV6: readonly (readonly [network: string, reason: string])[] = [
  ["2001::/32", "Teredo"],
  ["2001::/23", "protocol assignment"],
  ["2001:db8::/32", "documentation"],
  ["2002::/16", "6to4"],
  ["2620:4f:8000::/48", "AS112"],
  ["3fff::/20", "documentation"],
];

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");
const IPV4 = REFUSED_IPV4.map(([network, reason]) => ({ network: ipaddr.IPv4.parseCIDR(network), reason }));
const IPV6 = REFUSED_IPV6.map(([network, reason]) => ({ network: ipaddr.IPv6.parseCIDR(network), reason }));

/** Why `address` must not be connected to, or null when it is a public unicast address.
 *  Anything that is not a plain IP address is refused, so a caller cannot pass a name by mistake. */
export function refusalOfAddress(address: string): string | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) {
    const parsed = ipaddr.IPv4.parse(address);
    return IPV4.find((row) => parsed.match(row.network))?.reason ?? null;
  }
  if (!ipaddr.IPv6.isValid(address)) return "not an IP address";
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return "IPv4-mapped";
  if (!parsed.match(GLOBAL_UNICAST)) return "not global unicast";
  return IPV6.find((row) => parsed.match(row.network))?.reason ?? null;
}
