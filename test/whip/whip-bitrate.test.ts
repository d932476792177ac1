// The bitrate limit of a WHIP sender: the lowest of those set for the deployment, the plan, the organisation
// and the session. That a browser obeys is shown in whip-switch.test.ts.
import { afterEach, expect, test } from "vitest";
import { changeSettings } from "../../ts/organisation/settings.ts";
import { createLiveSessions } from "../../ts/publish/live-sessions.ts";
import { openWhipGateway, type WhipGateway } from "../support/whip-gateway.ts";

let gateway: WhipGateway;
afterEach(async () => await gateway.close());

/** Opens a gateway with one publish on it; returns what the tests use of it. */
async function publish({
  plan,
  ours,
  all,
  trial,
}: {
  plan: "trial" | "paid";
  ours: number;
  all: number;
  trial: number;
}) {
  gateway = await openWhipGateway({ settings: { maxBitrateKbps: { all, trial } } });
  const { id } = await gateway.db.selectFrom("organisation").select("id").executeTakeFirstOrThrow();
  await gateway.db.updateTable("organisation").set({ plan, trial_ends_at: null }).execute();
  await changeSettings(gateway.db, id, { max_bitrate_kbps: ours }, gateway.clock.ms);
  const { clientId } = await gateway.opened();
  const { publishing, media } = gateway;
  return {
    clientId,
    organisation: id,
    sessions: createLiveSessions({ publishing, media: () => media, clock: Date, findingsOf: () => [], dev: false }),
  };
}

test.each([
  { plan: "paid", all: 6_000, trial: 1_000, ours: 0, told: 6_000 },
  { plan: "paid", all: 6_000, trial: 1_000, ours: 2_500, told: 2_500 },
  { plan: "paid", all: 6_000, trial: 1_000, ours: 9_000, told: 6_000 },
  { plan: "trial", all: 6_000, trial: 1_000, ours: 0, told: 1_000 },
  { plan: "trial", all: 6_000, trial: 1_000, ours: 700, told: 700 },
  { plan: "trial", all: 0, trial: 0, ours: 0, told: 0 },
] as const)(
  "$plan, at most $all and on trial $trial, the organisation's $ours: $told kbit/s",
  async ({ told, ...limits }) => {
    const { sessions, organisation, clientId } = await publish(limits);
    expect(gateway.openings().at(-1)?.maxBitrateKbps).toBe(told);
    expect(sessions.show(organisation, clientId)?.maxBitrateKbps).toBe(told);
  },
);

test("a running session's limit is lowered and raised again, never above the organisation's", async () => {
  const { sessions, organisation, clientId } = await publish({ plan: "paid", all: 6_000, trial: 0, ours: 2_000 });
  for (const kbps of [800, 0, 4_000]) expect(sessions.limitBitrate(organisation, clientId, kbps)).toBe("limited");
  const told = gateway.media.commands.filter((of) => of.command === "limit_whip_bitrate").map(({ kbps }) => kbps);
  expect(told).toStrictEqual([800, 2_000, 2_000]);
  expect(sessions.limitBitrate("another", clientId, 800)).toBe("not_running");
});
