// Every id of a decision that code or a page cites is defined in docs/decisions.md.
import { expect, test } from "vitest";
import { missingPages, undefinedDecisions } from "../../scripts/decisions.mjs";

const definitions = {
  name: "docs/decisions.md",
  text: ["W3", "W12a", "R5", "reliability R4", "reliability R8"]
    .map((id) => `| ${id} | Subject | Decision |`)
    .join("\n"),
};
const complaintsAbout = (name: string, text: string) => undefinedDecisions([definitions, { name, text }]);

test.each([
  ["crates/ingest/src/live.rs", "/// Made up (W99).", "W99"],
  ["ts/errors.ts", "// The rule of W12b and W3.", "W12b"],
  ["docs/whip.md", "The session is over: P7.", "P7"],
  ["test/publish.test.ts", 'test("what W3–W6 want", run);', "W6"],
  ["tools/fuzz.mjs", "// reliability R5", "reliability R5"],
])("%s with %j is caught", (name, text, id) => {
  expect(complaintsAbout(name, text)).toEqual([`${name}: ${id} is not defined in docs/decisions.md`]);
});

test("a decision is cited by its id, a reliability test also by its number alone", () => {
  expect(complaintsAbout("ts/a.ts", "// W3, W12a, R5; reliability R4, R8.")).toEqual([]);
});

test("an id that is defined twice is caught", () => {
  const twice = { ...definitions, text: `${definitions.text}\n${definitions.text.split("\n")[0]}` };
  expect(undefinedDecisions([twice])).toEqual(["docs/decisions.md: W3 is defined twice"]);
});

test("what only resembles an id, recorded traffic and the rows of the conformance table are no citations", () => {
  expect(complaintsAbout("ts/a.ts", 'const text = "T00:00Z H264 W3C a=ice-pwd:P91&uY W98/x";')).toEqual([]);
  expect(complaintsAbout("crates/fuzz/corpus/a", "W99")).toEqual([]);
  expect(complaintsAbout("tools/whip-conformance/session.mjs", 'id: "S14"')).toEqual([]);
});

test.each([
  ["// as in operations.md", "operations.md"],
  ["//! `reliability.md` §1.", "reliability.md"],
  ["/** specification §3 */", "specification §"],
])("%j cites a page that does not exist", (text, cited) => {
  const page = { name: "docs/decisions.md", text: "" };
  expect(missingPages([page, { name: "ts/a.ts", text }])).toEqual([`ts/a.ts: ${cited} is no page of this repository`]);
  expect(missingPages([page, { name: "ts/a.ts", text: "// docs/decisions.md; RFC 9725 section 4.1" }])).toEqual([]);
});
