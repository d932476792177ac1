// A stream with a publish and a backup: what the customer is asked, which of them is on air, and who decides
// it.
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const BYTES = { bytesIn: 7, bytesOut: 9 };

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({
    webhook: customer.url,
    ca: customer.ca,
    settings: { upstreamPush: ["rtmp://up.example/live/{name}?{args}"] },
  });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

/** The hold and upstreams that the core got when a publish was allowed. */
function allowed(clientId: number) {
  for (const each of stage.media.commands) if (each.command === "allow" && each.clientId === clientId) return each;
  throw new Error(`publish ${clientId} was not allowed`);
}

const states = () => stage.publishing.running().map(({ clientId, onAir }) => [clientId, onAir]);

/** The core's event that one took over from another. */
function tookOver(clientId: number, other: number, cause: "lost" | "switched" = "switched"): void {
  stage.publishing.handle({ kind: "on_air_changed", clientId, onAir: true, other, cause });
  if (cause === "switched")
    stage.publishing.handle({ kind: "on_air_changed", clientId: other, onAir: false, other: clientId, cause });
}

test("the customer is asked about a backup with its argument; the backup is on standby, for the same upstreams", async () => {
  const main = await stage.allowed(STREAM, { arguments: "pass=1" });
  const backup = await stage.allowed(STREAM, { arguments: "pass=1&backup=1" });
  const asked = customer.calls("publish").map(({ body }) => body.split("&call=")[0]);
  expect(asked).toEqual(["pass=1", "pass=1&backup=1"]);
  expect(allowed(main).hold).toEqual({ windowMs: 10_000, continues: null });
  expect(allowed(backup).hold).toEqual({ windowMs: 10_000, continues: null, beside: main });
  expect(allowed(backup).upstreams).toEqual(allowed(main).upstreams);
  expect(states()).toEqual([
    [main, true],
    [backup, false],
  ]);
  stage.end(backup, "unpublished", BYTES);
  const done = await customer.received("publish_done");
  expect(done.body).toContain(`pass=1&backup=1&call=publish_done`);
});

test("a backup alone goes on air immediately, and the publish that follows is on standby", async () => {
  const backup = await stage.allowed(STREAM, { arguments: "backup=1" });
  expect(allowed(backup).hold).toEqual({ windowMs: 10_000, continues: null });
  const main = await stage.allowed(STREAM);
  expect(allowed(main).hold?.beside).toBe(backup);
  expect(states()).toEqual([
    [backup, true],
    [main, false],
  ]);
});

test("a stream has one publish and one backup: a second of either is refused while the first is live", async () => {
  await stage.allowed(STREAM);
  await stage.allowed(STREAM, { arguments: "backup=1" });
  for (const given of [null, "backup=1"]) {
    expect(await stage.request(STREAM, { arguments: given })).toMatchObject({ description: "Stream is already live" });
  }
  const rows = await stage.db.selectFrom("publish").select(["backup", "state"]).orderBy("client_id").execute();
  expect(rows).toEqual([
    { backup: 0, state: "live" },
    { backup: 1, state: "live" },
  ]);
});

test("a lost publish is continued by its backup", async () => {
  const main = await stage.allowed(STREAM);
  const backup = await stage.allowed(STREAM, { arguments: "backup=1" });
  stage.end(main, "broadcaster_left", BYTES, true);
  stage.publishing.handle({ kind: "hold_ended", clientId: main, successor: backup });
  tookOver(backup, main, "lost");
  expect(states()).toEqual([[backup, true]]);
  const [running] = stage.publishing.running();
  expect(running?.continues).toBe(main);
  expect(stage.publishing.ofStream("org1", running?.intent.streamId ?? "")?.clientId).toBe(backup);
  await until("its end is recorded", async () => {
    const row = await stage.db.selectFrom("publish").select("state").where("client_id", "=", main).executeTakeFirst();
    return row?.state === "ended";
  });
  const again = await stage.allowed(STREAM);
  expect(allowed(again).hold?.beside).toBe(backup);
});

test("a lost backup is continued by the publish with the same other arguments", async () => {
  const backup = await stage.allowed(STREAM, { arguments: "pass=1&backup=1" });
  stage.end(backup, "broadcaster_left", BYTES, true);
  await customer.received("publish_done");
  const main = await stage.allowed(STREAM, { arguments: "pass=1" });
  expect(allowed(main).hold).toEqual({ windowMs: 10_000, continues: backup });
});

test("a switch waits for the core, puts the other one on air when none is named, and may be repeated", async () => {
  const main = await stage.allowed(STREAM);
  const backup = await stage.allowed(STREAM, { arguments: "backup=1" });
  const streamId = stage.publishing.find(main)?.intent.streamId ?? "";
  const switching = stage.publishing.switchTo("org1", streamId, null);
  expect(stage.media.commands.at(-1)).toEqual({ command: "switch_to", clientId: backup });
  tookOver(backup, main);
  expect(await switching).toEqual({ clientId: backup, onAir: true });
  expect(await stage.publishing.switchTo("org1", streamId, backup)).toEqual({ clientId: backup, onAir: true });
  expect(await stage.publishing.switchTo("org1", streamId, main)).toEqual({ clientId: main, onAir: false });
  await expect(stage.publishing.switchTo("org1", streamId, 999_999)).rejects.toMatchObject({ code: "unknown_record" });
  await expect(stage.publishing.switchTo("org2", streamId, main)).rejects.toMatchObject({ code: "unknown_record" });
  await expect(stage.publishing.switchTo("org1", "other", null)).rejects.toMatchObject({ code: "no_standby" });
});
