// Whether the Node that runs this has the security fixes known when this version was made. Headgate works on older ones as
// well: this only warns.

/** By major version with long-term support: the first release with the fixes. */
const SECURE: Readonly<Record<number, string>> = { 22: "22.23.4", 24: "24.22.1", 26: "26.12.1" };
const RECOMMENDED = SECURE[24];
const NEWEST = Math.max(...Object.keys(SECURE).map(Number));

/** What is wrong with this Node, in words; null when nothing is, and for Deno and Bun. `versions`: of the process. */
export function insecureNode({ node, deno, bun }: NodeJS.ProcessVersions): string | null {
  if (deno !== undefined || bun !== undefined) return null;
  const [major = 0, minor = 0, patch = 0] = node.split(".").map(Number);
  if (major > NEWEST) return null;
  const secure = SECURE[major];
  if (secure === undefined) return `Node ${node} is past its end of life and gets no security fixes`;
  const [, leastMinor = 0, leastPatch = 0] = secure.split(".").map(Number);
  const isSecure = minor > leastMinor || (minor === leastMinor && patch >= leastPatch);
  return isSecure ? null : `Node ${node} lacks the security fixes of ${secure}`;
}

export const NODE_REMEDY = `use Node ${RECOMMENDED} or newer (22 from ${SECURE[22]}, 26 from ${SECURE[26]})`;
