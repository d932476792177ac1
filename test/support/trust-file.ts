// A file with certificates to trust, for settings that take a path.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const paths = new Map<string, string>();

/** Path of a file with `pem`, removed when the test process ends. */
export function trustFile(pem: string): string {
  const known = paths.get(pem);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), "headgate-trust-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "ca.pem");
  writeFileSync(path, pem);
  paths.set(pem, path);
  return path;
}
