// Whom an address stands for when something is counted by address.
import { isIPv6 } from "node:net";

/** An IPv6 client has a whole /64 to call from. */
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
