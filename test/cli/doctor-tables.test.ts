// What `headgate doctor` says about the tables that organisations fill.
import { describe, expect, test } from "vitest";
import { changed, doctorStores, finding, LIMIT_MS, newStore } from "../support/doctor.ts";

doctorStores();

describe.concurrent("the bounded tables", () => {
  const share = (table: "stream" | "audit" | "kept_answer", organisation: string, rows: number, bytes: number) => ({
    ...{ organisation_id: organisation, table_name: table, rows, bytes },
  });
  const withShares = async (shares: readonly ReturnType<typeof share>[]) => {
    const dataDir = await newStore();
    await changed(dataDir, async (db) => {
      for (const name of ["Acme", "Globex"]) {
        const of = { id: name, hash: name, name, plan: "paid", enabled: 1, created_at: 0, updated_at: 0 } as const;
        await db.insertInto("organisation").values(of).execute();
      }
      await db.deleteFrom("table_share").execute();
      await db
        .insertInto("table_share")
        .values([...shares])
        .execute();
      await db.insertInto("delivery_share").values({ organisation_id: "Globex", bytes: 90_000_000 }).execute();
    });
    return { HEADGATE_DATA_DIR: dataDir };
  };

  test(
    "who has most of each, in records and in bytes, and who has most altogether",
    async () => {
      const env = await withShares([
        ...[share("stream", "Acme", 50_000, 25_000_000), share("stream", "Globex", 100, 50_000_000)],
        ...[share("audit", "Acme", 400_000, 1_000_000), share("audit", "Globex", 300_000, 2_000_000)],
      ]);
      expect(await finding("largest share", env)).toMatchObject({
        state: "good",
        detail:
          "stream: Globex 100 records, 50.0 MB (2 % of its limit); " +
          "audit: Acme 400000 records, 1.0 MB (20 % of its limit)",
      });
      expect(await finding("organisations with the most", env)).toMatchObject({
        state: "good",
        detail: "Globex 142.0 MB in 300100 records, Acme 26.0 MB in 450000 records",
      });
    },
    LIMIT_MS,
  );

  test(
    "one that is nearly full for an organisation is a warning, unless its oldest records make room",
    async () => {
      const env = await withShares([
        ...[share("kept_answer", "Acme", 10, 60_000_000), share("kept_answer", "Globex", 100, 100)],
        ...[share("stream", "Globex", 4_600_000, 1), share("audit", "Acme", 2_000_000, 1)],
      ]);
      expect(await finding("largest share", env)).toMatchObject({
        state: "warning",
        detail: expect.stringMatching(/^stream: Globex 4600000 .*92 %.*; kept_answer: Acme .*94 % of its limit\)$/),
        remedy: expect.stringContaining("answers are kept for a day"),
      });
    },
    LIMIT_MS,
  );

  test(
    "none, in a new store",
    async () => {
      const { state, detail } = await finding("largest share", {});
      expect([state, detail]).toEqual(["good", expect.stringMatching(/^(none has any records|\w+: Headgate)/)]);
    },
    LIMIT_MS,
  );
});
