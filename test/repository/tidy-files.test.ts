// Rules for source files: their names, their length, and words they must not use.
import { expect, test } from "vitest";
import { untidyFiles } from "../../scripts/tidy-files.mjs";

const lines = (count: number) => "x\n".repeat(count);
const complaintsAbout = (name: string, text: string) => untidyFiles([{ name, text }], []);

test.each(["crates/rtmp/src/a.rs", "crates/rtmp/src/a_tests.rs", "ts/a.ts", "test/a.test.ts", "scripts/a.mjs"])(
  "%s may have 400 lines, not 401",
  (name) => {
    expect(complaintsAbout(name, lines(400))).toEqual([]);
    expect(complaintsAbout(name, lines(401))).toEqual([`${name} has 401 lines: none has more than 400`]);
  },
);

test.each([
  ["test/a.test.ts", "await pause(500);"],
  ["test/a.test.ts", "await new Promise((resolve) => setTimeout(resolve, 500));"],
  ["crates/ingest/src/tests/a.rs", "thread::sleep(FRAME);"],
])("a test in %s that waits for a duration (%s) says why on the line", (name, line) => {
  expect(complaintsAbout(name, `${line} // the moment is what is tested\n`)).toEqual([]);
  expect(complaintsAbout(name, `\n${line}\n`)).toEqual([`${name}:2 waits for a duration: for which state, or why?`]);
  expect(complaintsAbout(name, `${line} // why\n`.repeat(26))).toEqual([
    "tests wait for durations at 26 places: at most at 25",
  ]);
});

test("generated declarations and pages may be longer", () => {
  expect(complaintsAbout("ts/client/paths.d.ts", lines(900))).toEqual([]);
  expect(complaintsAbout("docs/a.md", lines(900))).toEqual([]);
});

test("a file on the list may be longer, and must leave the list when it no longer is", () => {
  const name = "ts/a.ts";
  expect(untidyFiles([{ name, text: lines(401) }], [name])).toEqual([]);
  const complaint = [`scripts/tidy-files.mjs: take ${name} off its list`];
  expect(untidyFiles([{ name, text: lines(400) }], [name])).toEqual(complaint);
  expect(untidyFiles([], [name])).toEqual(complaint);
});

test("a file must not have a catch-all name", () => {
  const name = "ts/utils.ts";
  expect(complaintsAbout(name, "")).toEqual([`${name}: a catch-all name; what does the file contain?`]);
});

test("a folder of the gateway has at most 20 files, not counting those in folders inside it", () => {
  const folder = (count: number) => [
    ...Array.from({ length: count }, (_, at) => ({ name: `ts/publish/a${at}.ts`, text: "" })),
    { name: "ts/publish/webhook/a.ts", text: "" },
    { name: "test/a.test.ts", text: "" },
  ];
  expect(untidyFiles(folder(20), [])).toEqual([]);
  expect(untidyFiles(folder(21), [])).toEqual(["ts/publish has 21 files: no folder has more than 20"]);
});

test.each([
  ["struct SeatKey(u32);", "Seat"],
  ["fn lane_of() {}", "lane"],
  ["// everybody on the boards", "boards"],
  ["const DESKS: usize = 1;", "DESKS"],
  ["let isDeaf = true;", "Deaf"],
  ["const LOOK_EVERY_MS = 1;", "LOOK"],
  ["await keys.lookAgain();", "look"],
  ["let isTold = false;", "Told"],
  ["export class ForeignPage {}", "Foreign"],
  ["const arrivals = [];", "arrivals"],
  ["await there();", "there"],
])("%j is caught in the gateway and in the crates", (text, word) => {
  for (const name of ["ts/http/a.ts", "ts/webcaster/a.ts", "crates/rtmp/src/a.rs", "crates/ingest/src/session/a.rs"]) {
    expect(complaintsAbout(name, `\n${text}`)).toEqual([`${name}:2: "${word}" has a plainer word`]);
  }
});

test("a private word in the name of a file is caught, words inside others and other folders are not", () => {
  const name = "crates/ingest/src/reactor/seat.rs";
  expect(complaintsAbout(name, "")).toEqual([`${name}: "seat" has a plainer word`]);
  const harmless = "use crate::switchboard::Switchboard; // dashboard, onboard, planes, wishbone, islander";
  expect(complaintsAbout("crates/ingest/src/switchboard/a.rs", harmless)).toEqual([]);
  expect(complaintsAbout("crates/aac/src/a.rs", "let lanes = f32x8::splat(LOOK_AHEAD);")).toEqual([]);
  expect(complaintsAbout("bench/a.mjs", "const seat = 1;")).toEqual([]);
});

test("a place is what a limit has a number of, and nothing else", () => {
  const text = "const place = room.take();";
  expect(complaintsAbout("ts/capacity/a.ts", text)).toEqual([]);
  expect(complaintsAbout("ts/http/a.ts", text)).toEqual(['ts/http/a.ts:1: "place" has a plainer word']);
  expect(complaintsAbout("ts/http/a.ts", "// It takes the place of another.\ncaller(no_place, placement);")).toEqual(
    [],
  );
});

test("words that are private only in names may stand in sentences and texts", () => {
  const harmless = [
    "// One request looks at a bounded number of rows; the peer is told why.",
    "/** Told the name of each migration. */",
    'log.info("told to stop"); const lookUps = createStreamLookUps();',
    'db.exec("PRAGMA foreign_keys = ON");',
  ];
  expect(complaintsAbout("ts/http/a.ts", harmless.join("\n"))).toEqual([]);
});
