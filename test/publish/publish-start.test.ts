// How publishing starts on a store with existing data.
import { afterEach, beforeEach, test } from "vitest";
import { DELIVERY_SIZE_LIMIT_BYTES } from "../../ts/publish/webhook/delivery-log.ts";
import { openStage, type Stage, until } from "../support/publishing.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

test("a delivery log over its limit is reduced although nothing is written", async () => {
  const told = { call: "publish", name: "n", url: "https://a.example/", body: "call=publish" } as const;
  const answered = { outcome: "answered", status: 200, reason: null, latency_ms: 1, attempts: 1 } as const;
  const times = { first_at: 1, last_at: 1 };
  await stage.db
    .insertInto("delivery")
    .values({
      ...{ id: "msg_1", organisation_id: "org1", client_id: 1, bytes: DELIVERY_SIZE_LIMIT_BYTES + 1 },
      ...{ ...told, ...answered, ...times },
    })
    .execute();
  await stage.publishing.takeOver("gateway_restarted");
  await until(async () => (await stage.db.selectFrom("delivery").select("id").execute()).length === 0);
});
