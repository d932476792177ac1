// `npm run whip-conformance -- URL [--token TOKEN] [--slow] [--flood] [--json] [--only ID] [--times N]`: checks any
// WHIP URL against RFC 9725 row by row, or against one row, once or more often. The stream must be free: every row
// publishes to it and ends what it began. Prints a table, or lines of JSON; exits with 1 if a MUST is unmet, 2 if
// nothing could be tested.
import { parseArgs } from "node:util";
import { Client, NotApplicable, Unmet } from "./whip-conformance/client.mjs";
import { endpointRows, wholeRunRows } from "./whip-conformance/endpoint.mjs";
import { headerRows } from "./whip-conformance/headers.mjs";
import { sessionRows } from "./whip-conformance/session.mjs";

const USAGE = "npm run whip-conformance -- URL [--token TOKEN] [--slow] [--flood] [--json] [--only ID] [--times N]";

const { values, positionals } = arguments_();
const client = new Client({ url: positionals[0], token: values.token, slow: values.slow, flood: values.flood });
const results = [];
const rows = [...endpointRows, ...sessionRows, ...headerRows, ...wholeRunRows];
const wanted = values.only === undefined ? rows : rows.filter(({ id }) => id === values.only);
for (const row of Array.from({ length: Number(values.times) }, () => wanted).flat()) {
  const result = { id: row.id, level: row.level, section: row.section, ...(await outcomeOf(row)), says: row.says };
  results.push(result);
  console.log(values.json ? JSON.stringify(result) : lineOf(result));
}
const count = (outcome, level) =>
  results.filter((result) => result.outcome === outcome && (level === undefined || result.level === level)).length;
const unmet = count("unmet", "must");
if (!values.json) {
  const not = `${unmet} MUST and ${count("unmet") - unmet} SHOULD or MAY unmet`;
  console.log(`\n${count("met")} met, ${not}, ${count("not applicable")} not applicable`);
}
process.exit(unmet === 0 ? 0 : 1);

function arguments_() {
  try {
    const flag = /** @type {const} */ ({ type: "boolean", default: false });
    const text = /** @type {const} */ ({ type: "string" });
    const times = /** @type {const} */ ({ type: "string", default: "1" });
    const options = { token: text, slow: flag, flood: flag, json: flag, only: text, times };
    const parsed = parseArgs({ options, allowPositionals: true });
    const isMeant = /^[1-9]\d{0,5}$/.test(parsed.values.times);
    if (isMeant && parsed.positionals.length === 1 && URL.canParse(parsed.positionals[0])) return parsed;
  } catch {
    // Handled like too few arguments.
  }
  console.error(USAGE);
  process.exit(2);
}

/** Runs one row and ends what it left open. */
async function outcomeOf(row) {
  try {
    await row.check(client);
    return { outcome: "met", seen: "" };
  } catch (error) {
    if (error instanceof NotApplicable) return { outcome: "not applicable", seen: error.message };
    if (error instanceof Unmet) return { outcome: "unmet", seen: error.message };
    if (client.seen.length === 0) {
      console.error(`no answer: ${error.message}`);
      process.exit(2);
    }
    return { outcome: "unmet", seen: `${error.name}: ${error.message}` };
  } finally {
    await client.tidy().catch(() => {});
  }
}

function lineOf({ id, level, section, outcome, says, seen }) {
  const mark = { met: "ok", unmet: "NO", "not applicable": "-" }[outcome];
  const tail = seen === "" ? "" : `: ${seen}`;
  return `${mark.padEnd(3)}${id.padEnd(5)}${level.toUpperCase().padEnd(7)}${section.padEnd(6)} ${says}${tail}`;
}
