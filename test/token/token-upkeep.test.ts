// How a running service keeps its token keys current, and that this stops with the service.
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { keepTokenKeys, type TokenKeys } from "../../ts/token/keys.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("keys are read every five seconds and checked for rotation every hour, until the service stops", async () => {
  const told: string[] = [];
  const keys = {
    async reload() {
      told.push("reload");
    },
    async upkeep(now: number) {
      told.push(`upkeep ${now}`);
    },
  } as Pick<TokenKeys, "reload" | "upkeep"> as TokenKeys;
  const stop = keepTokenKeys(keys, { clock: { now: () => 42 }, log: pino({ level: "silent" }) });
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual(["reload"]);
  vi.advanceTimersByTime(3_595_000);
  expect(told.filter((each) => each === "reload")).toHaveLength(720);
  expect(told.filter((each) => each !== "reload")).toEqual(["upkeep 42"]);
  await stop();
  vi.advanceTimersByTime(7_200_000);
  expect(told).toHaveLength(721);
});
