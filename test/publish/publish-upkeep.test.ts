// What is done every ten seconds for all running publishes, while the store does not answer.
import { pino } from "pino";
import { expect, test } from "vitest";
import { createUpkeep } from "../../ts/publish/running/upkeep.ts";

test("a store that does not answer is asked once, however often it is time again", async () => {
  let answer = (_: readonly never[]): void => {};
  let asked = 0;
  const execute = () => {
    asked += 1;
    return new Promise((resolve) => {
      answer = resolve;
    });
  };
  /** Whatever is added to the statement. */
  const query: unknown = new Proxy(() => query, {
    get: (_, name) => (name === "execute" ? execute : query),
    apply: () => query,
  });
  const upkeep = createUpkeep({
    db: query as never,
    media: () => ({ snapshot: () => null }),
    clock: { now: () => 0 },
    log: pino({ level: "silent" }),
    intents: () => [{ clientId: 1, organisationId: "org1" } as never],
    kick: () => false,
  });
  const first = upkeep();
  for (let times = 0; times < 2; times += 1) void upkeep();
  expect(asked).toBe(1);
  answer([]);
  await first;
  void upkeep();
  expect(asked).toBe(2);
});
