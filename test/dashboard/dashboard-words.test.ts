// Texts and sums of the dashboard, without a browser: roles, answers of the webhook, times, usage, form
// bodies.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { HeadgateError } from "../../ts/client/index.ts";
import { fieldOf, ofField, quickRanges, rangeOf, rangeQuery, rangeTexts } from "../../ts/dashboard/lists/time-range.ts";
import { AREAS, actionWords, detailWords } from "../../ts/dashboard/organisation/audit-words.ts";
import { newPassword } from "../../ts/dashboard/organisation/new-password.ts";
import { SETTING_WORDS } from "../../ts/dashboard/organisation/setting-words.ts";
import { byDay, byStream, firstDayOf } from "../../ts/dashboard/organisation/usage-sums.ts";
import { bitrateWords, bytesWords, counted, durationWords, relativeTime } from "../../ts/dashboard/parts/time-words.ts";
import { filteredAddress, isReadable } from "../../ts/dashboard/shell/addresses.ts";
import { addCommands, type Command, findCommands, inGroups, matching } from "../../ts/dashboard/shell/commands.ts";
import { wordsOfError } from "../../ts/dashboard/shell/errors.ts";
import type { Pages } from "../../ts/dashboard/shell/loaded.ts";
import { LEAST_ROLE, mayDo } from "../../ts/dashboard/shell/permissions.ts";
import { mergedPages, type Publish, type Refusal } from "../../ts/dashboard/stream/history/merged.ts";
import { type Answer, denialWords, longWords, shortWords, toneOf } from "../../ts/dashboard/webhook/answer-words.ts";
import { fieldsOf } from "../../ts/dashboard/webhook/form-body.ts";
import { type Action, ROUTES, requireRole } from "../../ts/organisation/roles.ts";
import { organisationSettings } from "../../ts/organisation/settings.ts";
import { REFUSAL_REASONS } from "../../ts/publish/refusals/reasons.ts";
import { UNREACHABLE_CAUSES } from "../../ts/publish/webhook/answer.ts";
import { ROLES } from "../../ts/store/tables/roles.ts";
import { refusalWords } from "../../ts/text/refusal-words.ts";

test("the page agrees with the API on what each role may do", () => {
  // Whether somebody sees the deployment is read from /me, because that depends on the organisation as well
  // as the role; captures have no page.
  const others = ["anyone", "view_deployment", "capture"];
  const guarded = new Set(Object.values(ROUTES).filter((action) => !others.includes(action)));
  expect(new Set(Object.keys(LEAST_ROLE))).toEqual(guarded);
  for (const role of ROLES) {
    for (const action of Object.keys(LEAST_ROLE) as (Action & keyof typeof LEAST_ROLE)[]) {
      let allows = true;
      try {
        requireRole(role, action);
      } catch {
        allows = false;
      }
      expect(mayDo({ role }, action), `${role} ${action}`).toBe(allows);
    }
    expect(mayDo({ role }, "operate")).toBe(false);
    expect(mayDo({ role, operator: true }, "operate")).toBe(true);
  }
});

test("every setting has a name and a sentence", () => {
  expect(Object.keys(SETTING_WORDS).sort()).toEqual(Object.keys(organisationSettings.shape).sort());
});

describe("an answer of the webhook", () => {
  const answered = (status: number, reason: string | null = null): Answer => ({ outcome: "answered", status, reason });

  test.each([
    [answered(200), "publish", "good", "200", "The publish is allowed."],
    [answered(403), "publish", "attention", "403", "Your webhook answered 403, so the publish is refused."],
    [answered(204), "publish", "bad", "204", "Your webhook answered 204. Only 200 allows, so the publish is refused."],
    [
      answered(500),
      "update_publish",
      "bad",
      "failed (500)",
      "Your webhook failed (status 500). Only 200 allows, so the publish is stopped.",
    ],
    [answered(200), "publish_done", "good", "200", "Your webhook received the event."],
    [
      answered(503),
      "publish_done",
      "bad",
      "failed (503)",
      "Your webhook failed (status 503), so the event is sent again later.",
    ],
  ] as const)("%o to %s is described with its effect", (answer, call, tone, short, long) => {
    expect([toneOf(answer), shortWords(answer), longWords(answer, call)]).toEqual([tone, short, long]);
  });

  test("that never came has a different text for every cause", () => {
    const said = UNREACHABLE_CAUSES.map((outcome) => longWords({ outcome, status: null, reason: null }, "publish"));
    expect(new Set(said).size).toBe(UNREACHABLE_CAUSES.length);
  });

  test("explains why a publish did not go ahead, by the organisation's own switch when there was no answer", () => {
    const none: Answer = { outcome: "deadline", status: null, reason: null };
    expect(denialWords(answered(200), "deny")).toBeNull();
    expect(denialWords(none, "deny")).toContain("the publish is refused");
    expect(denialWords(none, "allow")).toContain("the publish goes ahead");
    expect(denialWords(answered(403, "Not today"), "deny")).toBe("Your webhook refused it and gave a reason.");
    expect(denialWords(answered(403), "deny")).toContain("without a reason");
    expect(denialWords(answered(301), "deny")).toContain("Only 200");
  });
});

test("times are written as people say them", () => {
  const now = Date.UTC(2026, 4, 31, 12);
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const ago = [5_000, 3 * minute, 2 * hour, day, 5 * day].map((ms) => relativeTime(now - ms, now));
  expect(ago).toEqual(["just now", "3 min ago", "2 h ago", "1 day ago", "5 days ago"]);
  expect([2 * hour, 20 * day].map((ms) => relativeTime(now + ms, now))).toEqual(["in 2 h", "in 20 days"]);
  expect([59, 60, 100, 364, 365, 800].map((days) => relativeTime(now - days * day, now))).toEqual([
    "59 days ago",
    "1 month ago",
    "3 months ago",
    "11 months ago",
    "1 year ago",
    "2 years ago",
  ]);
  expect([5_000, 30_000].map((ms) => relativeTime(now + ms, now))).toEqual(["just now", "in a moment"]);
  expect([187_000, 3_723_000, -1].map(durationWords)).toEqual(["3:07", "1:02:03", "0:00"]);
});

test("a span of time is the same in the page's address, in the fields and in a request", () => {
  const from = Date.UTC(2026, 0, 31, 14, 0);
  const texts = { from: "2026-01-31T14:00Z", to: "2026-01-31T14:05:07.250Z" };
  const range = { from, to: from + 307_250 };
  expect(rangeTexts(range)).toEqual(texts);
  expect(rangeOf(texts)).toEqual(range);
  expect(rangeQuery({ from, to: null })).toEqual({ from: texts.from });
  expect(ofField(fieldOf(from))).toBe(from);
  expect(fieldOf(from)).toMatch(/^2026-0[12]-[03]\d[T]\d\d:\d\d$/);
  for (const unreadable of ["", "yesterday", "2026-01-31", "31.1.2026 14:00", "2026-13-31T14:00Z", "1769868000000"])
    expect(rangeOf({ from: unreadable }), unreadable).toEqual({ from: null, to: null });
});

test("the spans that are one press away end now, or are whole days of the browser", () => {
  const now = new Date(2026, 2, 1, 14, 2, 33).getTime();
  const at = (...parts: [number, number, number, number?, number?]) => new Date(...parts).getTime();
  expect(Object.fromEntries(quickRanges(now))).toEqual({
    "Last hour": { from: at(2026, 2, 1, 13, 2), to: null },
    "Last 24 hours": { from: at(2026, 1, 28, 14, 2), to: null },
    Today: { from: at(2026, 2, 1), to: null },
    Yesterday: { from: at(2026, 1, 28), to: at(2026, 2, 1) },
    "Last 7 days": { from: at(2026, 1, 22, 14, 2), to: null },
  });
});

describe("a stream's history of publishes and refusals", () => {
  const at = (minute: number) => `2026-01-31T14:${String(minute).padStart(2, "0")}:00.000Z`;
  const publishes = (minutes: readonly number[], hasMore = false) =>
    pagesOf(
      minutes.map((minute) => ({ asked_at: at(minute) }) as Publish),
      hasMore,
    );
  const refusals = (minutes: readonly number[], hasMore = false, client_id: number | null = null) =>
    pagesOf(
      minutes.map((minute) => ({ at: at(minute), client_id }) as Refusal),
      hasMore,
    );
  const asked: unknown[] = [];
  const pagesOf = <Row>(rows: readonly Row[] | null, hasMore: boolean): Pages<Row> => ({
    ...{ rows, hasMore, error: null, isLoading: false, change() {} },
    async more() {
      asked.push(rows);
    },
    async reload() {},
  });
  const minutesOf = (merged: ReturnType<typeof mergedPages>) =>
    merged.rows?.map(({ kind, at }) => `${kind.charAt(0)}${Number(at.slice(14, 16))}`);

  test.each([
    ["complete lists", publishes([9, 5, 1]), refusals([7, 2]), ["p9", "r7", "p5", "r2", "p1"]],
    ["publishes that go on", publishes([9, 5], true), refusals([7, 2]), ["p9", "r7", "p5"]],
    ["refusals that go on", publishes([9, 5, 1]), refusals([7, 2], true), ["p9", "r7", "p5", "r2"]],
    ["two that go on", publishes([9, 5], true), refusals([8, 7], true), ["p9", "r8", "r7"]],
    ["an empty page that goes on", publishes([9, 5]), refusals([], true), []],
    ["denied publishes, which are in both", publishes([9]), refusals([9], false, 7), ["p9"]],
  ])("%s: nothing is shown whose place is not known yet", (_, published, refused, expected) => {
    expect(minutesOf(mergedPages(published, refused))).toEqual(expected);
  });

  test("loads only the list that keeps the other one back, and waits for both", async () => {
    const [published, refused] = [publishes([9, 5], true), refusals([8, 7], true)];
    await mergedPages(published, refused).more();
    expect(asked.splice(0)).toEqual([refused.rows]);
    expect(mergedPages(published, pagesOf<Refusal>(null, false)).rows).toBeNull();
  });
});

test("every reason of a refusal has a title of its own, says what happened, and what to do about it", () => {
  const all = REFUSAL_REASONS.map(refusalWords);
  expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
  expect(new Set(all.map(({ happened }) => happened)).size).toBe(all.length);
  for (const { title, happened, advice } of all) {
    expect(title.length, title).toBeLessThan(30);
    expect([happened, advice], title).toEqual([
      expect.stringMatching(/^[A-Z].+\.$/),
      expect.stringMatching(/^[A-Z].+\.$/),
    ]);
  }
  expect(refusalWords("of_a_newer_version")).toMatchObject({ happened: "Refused: of a newer version.", advice: "" });
});

test("amounts have a unit and three digits", () => {
  expect([0, 999, 1_000, 15_500, 812_345, 1_624_690_000, 2.5e17].map(bytesWords)).toEqual([
    "0 B",
    "999 B",
    "1.00 kB",
    "15.5 kB",
    "812 kB",
    "1.62 GB",
    "250 PB",
  ]);
  expect([850.4, 2_437].map(bitrateWords)).toEqual(["850 kbps", "2.4 Mbps"]);
  expect([counted(1, "stream"), counted(4, "stream")]).toEqual(["1 stream", "4 streams"]);
});

test("usage is summed by day without gaps, and by stream with the largest first", () => {
  const rows = [
    { day: "2026-02-27", stream: "a", streamname: "A", bytes_in: 1, bytes_out: 2 },
    { day: "2026-02-27", stream: "b", streamname: "B", bytes_in: 10, bytes_out: 20 },
    { day: "2026-03-01", stream: "a", streamname: "A", bytes_in: 100, bytes_out: 200 },
  ];
  expect(byDay(rows, "2026-02-27", "2026-03-01")).toEqual([
    { day: "2026-02-27", bytes_in: 11, bytes_out: 22 },
    { day: "2026-02-28", bytes_in: 0, bytes_out: 0 },
    { day: "2026-03-01", bytes_in: 100, bytes_out: 200 },
  ]);
  expect(byStream(rows).map(({ streamname, bytes_in }) => [streamname, bytes_in])).toEqual([
    ["A", 101],
    ["B", 10],
  ]);
  expect(firstDayOf(30, "2026-01-31")).toBe("2026-01-02");
});

test("the fields of a body are separated into custom arguments and our own", () => {
  const body = "call=publish&pass%20code=%FF+a&call=publish&name=Ab1Cd-9XyZ0&clientid=7";
  expect(fieldsOf(body).map(({ field, value, isCustom }) => [field, value, isCustom])).toEqual([
    ["call", "publish", true],
    ["pass code", "%FF+a", true],
    ["call", "publish", false],
    ["name", "Ab1Cd-9XyZ0", false],
    ["clientid", "7", false],
  ]);
});

test("an entry of the audit log is a sentence, and an unknown action shows its name", () => {
  expect(actionWords("key.create")).toBe("Created an API key");
  expect(actionWords("moon.launch")).toBe("moon.launch");
  expect(detailWords({ id: "6f0e", role: "user", scope_tag: null, tags: ["a", "b"], empty: [] })).toEqual([
    "role: user",
    "tags: a, b",
  ]);
});

test("every action that the gateway records in the audit log has words, and an area to filter by", () => {
  const sources = readdirSync("ts", { recursive: true, encoding: "utf8" }).filter((path) =>
    /^(http|organisation|publish|token|cli)\/.*\.ts$/.test(path),
  );
  const recorded = sources.flatMap((path) =>
    readFileSync(join("ts", path), "utf8")
      .split("\n")
      .filter((line) => /\baction\b|\bnoted\(|\brecord\(|renewSecret\(/.test(line))
      .flatMap((line) => [...line.matchAll(/"([a-z_]+(?:\.[a-z_]+)+)"/g)].map(([, action = ""]) => action)),
  );
  expect(recorded).toContain("webhook.copies.secret");
  expect(recorded.filter((action) => actionWords(action) === action)).toEqual([]);
  expect(recorded.filter((action) => !Object.keys(AREAS).includes(action.split(".")[0] ?? ""))).toEqual([]);
});

test("a refused call is explained with what to do", () => {
  const words = (status: number, code: number, message: string, userinfo: object = {}) =>
    wordsOfError(new HeadgateError(new Response(null, { status }), { error: { code, message, userinfo } }));
  expect(words(403, 2001, "Access denied", { required_role: "administrator" })).toBe(
    "Only administrators may do this.",
  );
  expect(
    words(400, 9002, "Invalid value: email must be an e-mail address", {
      parameter: "email",
      reason: "must be an e-mail address",
    }),
  ).toBe("Email must be an e-mail address.");
  expect(words(400, 9001, "Invalid webhook URL", { reason: "must be https" })).toBe(
    "This address cannot be the webhook: must be https.",
  );
  expect(words(500, 9500, "Internal error")).toContain("Something failed inside Headgate.");
  expect(wordsOfError(new TypeError("fetch failed"))).toContain("does not answer");
});

test("addresses omit unused filters, and one that cannot be decoded is detected", () => {
  expect(filteredAddress("/dashboard/audit", { area: "key", who: "", more: null })).toBe("/dashboard/audit?area=key");
  expect(filteredAddress("/dashboard/audit", { area: "" })).toBe("/dashboard/audit");
  expect([isReadable("/dashboard/a%20b"), isReadable("/dashboard/%E0%A4%A")]).toEqual([true, false]);
});

test("the palette finds titles by every word, matches at the beginning first, and groups them", async () => {
  const command = (title: string, words = ""): Command => ({
    id: title,
    title,
    words,
    group: "Go to",
    icon: "docs",
    run() {},
  });
  const all = [command("API keys"), command("Settings"), command("Keys of a stream"), command("People", "keys")];
  const found = (typed: string) => matching(all, typed).map(({ title }) => title);
  expect(found("keys")).toEqual(["Keys of a stream", "API keys", "People"]);
  expect(found("key api")).toEqual(["API keys"]);
  expect(found("")).toHaveLength(4);
  expect(
    inGroups([{ ...command("A"), group: "x" }, command("B"), { ...command("C"), group: "x" }]).map((of) => of.title),
  ).toEqual(["A", "C", "B"]);
});

test("the palette shows known commands immediately, and later answers beside them", async () => {
  const named = (title: string): Command => ({ id: title, title, group: "Go to", icon: "docs", run() {} });
  const told: string[][] = [];
  const note = (all: readonly Command[]) => void told.push(all.map(({ title }) => title));
  const remove = [addCommands(async (typed) => [named(`Stream ${typed}`)]), addCommands(() => [named("People")])];
  findCommands("x", new AbortController().signal, note);
  expect(told).toEqual([["People"]]);
  await Promise.resolve();
  expect(told).toEqual([["People"], ["Stream x", "People"]]);

  const controller = new AbortController();
  findCommands("y", controller.signal, note);
  controller.abort();
  await Promise.resolve();
  expect(told.at(-1)).toEqual(["People"]);
  for (const each of remove) each();
  findCommands("z", new AbortController().signal, note);
  expect(told).toHaveLength(3);
});

test("generated passwords have 20 letters that are not easily confused, and never repeat", () => {
  const made = Array.from({ length: 200 }, newPassword);
  for (const password of made) expect(password).toMatch(/^[a-km-zA-HJ-NP-Z2-9]{5}(-[a-km-zA-HJ-NP-Z2-9]{5}){3}$/);
  expect(new Set(made).size).toBe(200);
});
