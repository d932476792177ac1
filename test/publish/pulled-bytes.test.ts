// Bytes that players on this node receive of publishes on others: each counts once, also when the store fails for a moment.
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createPulledBytes } from "../../ts/publish/bytes/pulled-bytes.ts";
import { addStream, openStage, type Stage } from "../support/publishing.ts";

const CLIENT = 7;

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
  await addStream(stage.db, "Ab1Cd-1", "live");
  await sql`insert into publish (client_id, organisation_id, stream_id, name, app, address, protocol, state, asked_at,
    bytes_in, bytes_out, epoch) values (${CLIENT}, 'org1', 'stream Ab1Cd-1', 'Ab1Cd-1', 'live', '192.0.2.1', 'rtmp', 'live', 0,
    0, 0, 99)`.execute(stage.db);
});
afterEach(() => stage.close());

async function counted(): Promise<number> {
  const row = await stage.db.selectFrom("publish").select("bytes_elsewhere").where("client_id", "=", CLIENT).execute();
  return Number(row[0]?.bytes_elsewhere);
}

test("bytes of a pull that ends while the store fails are recorded later, and those of the next pull add to them", async () => {
  const { db } = stage;
  let sent: number | null = 100;
  const pulls = () => (sent === null ? [] : [{ clientId: CLIENT, bytesOut: sent }]);
  const bytes = createPulledBytes({ db, media: () => ({ pulls }), clock: { now: () => stage.clock.ms } } as never);
  await bytes.record();
  await sql`create trigger full before update on publish begin select raise(abort, 'the disk is full'); end`.execute(
    db,
  );
  sent = null;
  await expect(bytes.ended({ clientId: CLIENT, bytesOut: 150 })).rejects.toThrow("the disk is full");
  await sql`drop trigger full`.execute(db);
  await bytes.record();
  expect(await counted()).toBe(150);
  sent = 20;
  await bytes.record();
  expect(await counted()).toBe(170);
});
