// The memory of ended WHIP sessions is bounded: for one organisation, for all, and in time.
import { expect, test } from "vitest";
import { createEndedSessions } from "../../ts/publish/ending/ended-sessions.ts";
import { endingFromText, endingOf, endingText, readEnding, writeEnding } from "../../ts/publish/ending/ending.ts";
import { refusalOfStream } from "../../ts/publish/ending/refused-streams.ts";

const ENDING = endingOf("ended_by_person", "Off air");
const publishOf = (session: string | null, organisationId = "org1") =>
  ({ session, intent: { organisationId }, claims: null }) as never;

test("an organisation keeps its newest five hundred, and takes none of another's; all go after two minutes", () => {
  const clock = { ms: 7_200_000, now: () => clock.ms };
  const sessions = createEndedSessions({ db: {} as never, clock });
  sessions.add(publishOf("other", "org2"), ENDING);
  for (let n = 0; n < 1_000; n += 1) sessions.add(publishOf(`s${n}`), ENDING);
  const kept = () => Array.from({ length: 1_000 }, (_, n) => sessions.recent(`s${n}`)).filter((of) => of !== null);
  expect(kept()).toHaveLength(500);
  expect([sessions.recent("s499"), sessions.recent("s500"), sessions.recent("other")]).toEqual([null, ENDING, ENDING]);
  clock.ms = 0; // the clock is set back
  expect(kept()).toHaveLength(500);
  clock.ms = 120_000;
  expect([kept().length, sessions.recent("other")]).toEqual([0, null]);
});

test("all organisations together keep five thousand; RTMP publishes have no session", () => {
  const sessions = createEndedSessions({ db: {} as never, clock: { now: () => 0 } });
  for (let n = 0; n < 6_000; n += 1) sessions.add(publishOf(`s${n}`, `org${n % 100}`), ENDING);
  sessions.add(publishOf(null), ENDING);
  expect([sessions.recent("s999"), sessions.recent("s1000")]).toEqual([null, ENDING]);
});

test("an ending reads as it was written, and one of a newer version as none", () => {
  for (const ending of [endingOf("stream_locked", null, { kind: "user", id: "a:b" }), endingOf("token_revoked")]) {
    expect(readEnding(writeEnding(ending))).toEqual(ending);
    expect(endingFromText(endingText(ending))).toEqual(ending);
  }
  const newer = { end_code: "ended_by_moon", end_who: null, end_detail: "x" };
  expect([readEnding(newer), endingFromText(null).code]).toEqual([null, "ended_by_person"]);
});

test("a refusal's text has at most 200 characters and always says for how long", () => {
  const stream = { state: "ended", refused_until: 30_000, refused_reason: "x".repeat(200) } as const;
  const { description = "", retryAfterS } = refusalOfStream(stream, 500) ?? {};
  expect([description.length, retryAfterS]).toEqual([200, 30]);
  expect(description).toMatch(/x \(refused for another 30 s\)$/);
  expect(refusalOfStream(stream, 30_000)).toBeNull();
});

test("a refusal that was begun by a clock which was ahead ends when that is set right", () => {
  const stream = { state: "ended", refused_until: 9_000_000, refused_reason: null } as const;
  expect(refusalOfStream(stream, 9_000_000 - 3_600_000)).not.toBeNull();
  expect(refusalOfStream(stream, 9_000_000 - 7_200_001)).toBeNull();
});
