// Checks names and lengths of source files, and words that have a plainer alternative.

const SOURCE = /\.(rs|tsx?|mjs|js)$/;
const GENERATED = /\.d\.ts$/;
/** Longer files are hard to read. */
const LINES_LIMIT = 400;
/** Files that already exceeded the limit: none is added, and one that was shortened is removed. */
const STILL_LONGER = ["test/browser/either-store/webcaster.test.ts"];
/** A folder of the gateway with more files is hard to survey; its subfolders are not counted. */
const FOLDER_LIMIT = 20;
const GATEWAY = /^ts\//;
/** Names of catch-all files. */
const DRAWERS = /(^|\/)(utils?|common|helpers?|types|misc)(\.\w+)?(\/|$)/;
/** Words of a private dialect in all their forms, which neither names nor comments must use. */
const PRIVATE_WORDS =
  /^(seat(s|ed)?|desks?|boards?|lanes?|wish(es|ed)?|hurr(y|ies|ied)|detours?|deaf|gatherings?|judge[sd]?|judging)$/;
/** Words of it that are plain English in a sentence, but say nothing in a name. The time of arrival is RTP's. */
const PRIVATE_NAMES = /^(look(s|ed|ing)?|told|untold|foreign|arrivals|courses?)$/;
const PRIVATE_CALLS = /(?<![\w.])(there|go)\(/;
/** A place is what a limit has a number of: capacity for one more publish, call, delivery, connection or row. */
const PLACES = /^places?$/;
const WITH_PLACES =
  /^ts\/(capacity\/|publish\/(webhook|admission|refusals|whip)\/|publish\/(admission|allowed|publishes)\.ts|http\/v5\/|organisation\/passwords\.ts)/;
/** Terms of the field, of a browser's API and of our own. */
const FIELD_TERMS = /look(ed|s|ing)?_?-?ups?(?![a-z])|look_?ahead|foreign_key|(?:RTCIce|ice)?gatheringState|no_place/gi;
/** Where a lane is one of a vector's numbers. */
const VECTORS = /^crates\/aac\//;
const COMMENTS_AND_TEXTS =
  /\/\/.*|^\s*(\/\*\*|\*).*|\/\*.*?\*\/|"(\\.|[^"\\])*"|`[^`]*`?|(>|^\s+[A-Z])[^<>{}=;()]*<(?=\/|\w+[ >])/g;
const CHECKED_FOR_WORDS = /^(ts|crates)\//;

/** A test waits for a state: `until`. Where it waits for a duration, the line says why, and there are few such places. */
const FIXED_WAIT =
  /(?<![\w.])pause\((?!\))|thread::sleep\(|setTimeout\((resolve|done), (?!0\))|waitForTimeout\(|timers\/promises.*setTimeout/;
const WAITING_ITSELF = /^test\/(support\/(pause|child|publishing)|repository\/tidy-files\.test)\.ts$/;
const MAY_WAIT = /^test\/.*\.ts$|^crates\/.*\/tests?\/.*\.rs$/;
const FIXED_WAITS_LIMIT = 25;

/** Each fault as `path: what`.
 *  @param {readonly { name: string, text: string }[]} files the files of the checkout, by path and content
 *  @param {readonly string[]} stillLonger files that may exceed the limit, and must */
export function untidyFiles(files, stillLonger = STILL_LONGER) {
  const complaints = [];
  const long = new Set();
  const waits = [];
  for (const { name, text } of files) {
    if (!SOURCE.test(name) || GENERATED.test(name)) continue;
    const lines = text.split("\n").length - 1;
    if (lines > LINES_LIMIT) long.add(name);
    if (lines > LINES_LIMIT && !stillLonger.includes(name)) {
      complaints.push(`${name} has ${lines} lines: none has more than ${LINES_LIMIT}`);
    }
    if (DRAWERS.test(name)) complaints.push(`${name}: a catch-all name; what does the file contain?`);
    if (CHECKED_FOR_WORDS.test(name)) complaints.push(...privateWords(name, text));
    if (MAY_WAIT.test(name) && !WAITING_ITSELF.test(name)) waits.push(...fixedWaits(name, text));
  }
  complaints.push(...fullFolders(files));
  complaints.push(
    ...waits.filter(({ reason }) => !reason).map(({ at }) => `${at} waits for a duration: for which state, or why?`),
  );
  if (waits.length > FIXED_WAITS_LIMIT) {
    complaints.push(`tests wait for durations at ${waits.length} places: at most at ${FIXED_WAITS_LIMIT}`);
  }
  const shortened = stillLonger.filter((name) => !long.has(name));
  return [...complaints, ...shortened.map((name) => `scripts/tidy-files.mjs: take ${name} off its list`)];
}

/** Where a test waits for a duration, and whether the line has a reason. */
function fixedWaits(name, text) {
  return text
    .split("\n")
    .flatMap((line, number) =>
      FIXED_WAIT.test(line.replace(/^\s*(\/\/|\*).*/, ""))
        ? [{ at: `${name}:${number + 1}`, reason: /\/\/ \w/.test(line) }]
        : [],
    );
}

/** Folders of the gateway with more source files than `FOLDER_LIMIT`. */
function fullFolders(files) {
  const counts = new Map();
  for (const { name } of files) {
    if (!GATEWAY.test(name) || !SOURCE.test(name)) continue;
    const folder = name.slice(0, name.lastIndexOf("/"));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_LIMIT)
    .map(([folder, count]) => `${folder} has ${count} files: no folder has more than ${FOLDER_LIMIT}`);
}

/** By line; a name is checked word by word: `seat_of` and `SeatKey` contain "seat", `switchboard` and `planes` do
 *  not match. */
function privateWords(path, text) {
  const terms = VECTORS.test(path) ? /lanes?|look_?ahead/gi : FIELD_TERMS;
  const hasNoPlaces = path.startsWith("ts/") && !WITH_PLACES.test(path);
  return [path, ...text.split("\n")].flatMap((line, number) => {
    const whole = line.replace(terms, "");
    const code = whole.replace(COMMENTS_AND_TEXTS, "");
    const word =
      wordIn(whole, PRIVATE_WORDS) ??
      wordIn(code, PRIVATE_NAMES) ??
      PRIVATE_CALLS.exec(code)?.[1] ??
      (hasNoPlaces ? wordIn(code, PLACES) : undefined);
    return word === undefined ? [] : [`${path}${number === 0 ? "" : `:${number}`}: "${word}" has a plainer word`];
  });
}

function wordIn(line, words) {
  return line.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g)?.find((word) => words.test(word.toLowerCase()));
}
