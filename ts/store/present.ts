// Whether there is a store at all: asked by commands that work with one and are not to make an empty one.
import { statSync } from "node:fs";
import { join } from "node:path";

/** True also when it cannot be known: then opening the store says what is wrong. Never rejects. */
export async function isStorePresent(place: {
  readonly dataDir: string;
  /** null for the embedded store. */
  readonly databaseUrl: string | null;
}): Promise<boolean> {
  return place.databaseUrl === null ? hasFile(place.dataDir) : await hasTables(place.databaseUrl);
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
