// Whether a store exists: for commands that work with one and must not create an empty one.
import { statSync } from "node:fs";
import { join } from "node:path";

/** Also true when it cannot be determined: opening the store then reports the problem. Never rejects. */
export async function isStorePresent(location: {
  readonly dataDir: string;
  /** null for the embedded store. */
  readonly databaseUrl: string | null;
}): Promise<boolean> {
  return location.databaseUrl === null ? hasFile(location.dataDir) : await hasTables(location.databaseUrl);
}

function hasFile(dataDir: string): boolean {
  try {
    return statSync(join(dataDir, "headgate.db")).isFile();
  } catch (error) {
    return !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

async function hasTables(databaseUrl: string): Promise<boolean> {
  const { connectedClient } = await import("./postgres/connecting.ts");
  try {
    const client = await connectedClient(databaseUrl);
    try {
      const { rows } = await client.query<{ found: number }>("select to_regclass('migration') is not null as found");
      return rows[0]?.found !== 0;
    } finally {
      await client.end().catch(() => {});
    }
  } catch {
    return true;
  }
}
