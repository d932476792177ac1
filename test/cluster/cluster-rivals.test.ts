// The end of a publish on another node that gives way to a new one, or does not.
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Channel } from "../../ts/cluster/channel.ts";
import type { Node } from "../../ts/cluster/nodes.ts";
import type { Owned } from "../../ts/cluster/owners.ts";
import { createRivals } from "../../ts/cluster/rivals.ts";
import { pause } from "../support/pause.ts";

test("the store is not asked any more about the end of a publish whose node does not answer", async () => {
  let asked = 0;
  const owned: Owned = { clientId: 7, organisationId: "o", streamId: "s", node: { name: "other" } as Node };
  const ofSlot = async () => {
    asked += 1;
    return owned;
  };
  const call: Channel["call"] = async () => await Promise.reject(new Error("unreachable"));
  const rivals = createRivals({
    owners: { ofName: async () => owned, ofSlot },
    channel: { call } as Channel,
    log: pino({ level: "silent" }),
  });
  const { rival } = await rivals.find({ name: "Ab1Cd-1", backup: false });
  await rival?.replace();
  const before = asked;
  await pause(300); // absence cannot be awaited
  expect(before).toBeGreaterThan(2);
  expect(asked - before).toBeLessThanOrEqual(1);
});
