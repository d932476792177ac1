// Checks that what code, tests and pages cite exists: every decision id is defined once in docs/decisions.md, and every
// page is in this repository.

const DEFINITIONS = "docs/decisions.md";
/** Files in which ids are cited: those written by people. Recorded traffic and lock files contain random text. */
const WRITTEN = /\.(rs|ts|mjs|js|md|toml)$/;
/** The rows of the WHIP conformance table have ids of their own, and the test of this rule invents some. */
const OTHER_IDS = /^(tools|test)\/(.*\/)?whip-conformance|^test\/(.*\/)?decisions\.test\.ts$/;

/** W3, W12a, `reliability R4`; not within a longer word or encoded text. */
const CITATION = /(?<![\w/+=%&}\\.-])(?:(reliability) )?([WMTPSR][1-9]\d?[a-z]?)(?![\w/+=%&]|\.\w)/g;
/** The first cell of a row. */
const DEFINITION = /^\| ((?:reliability )?[WMTPSR][1-9]\d?[a-z]?) \|/gm;

/** A page, and a chapter of a document that is not in the repository. */
const PAGE =
  /(?<![\w*$}-])([\w-]+\.md)\b|\b(?:specification|api|operations|reliability|design|performance)(?:\.md)? §/g;
/** Source files; the tests of these rules invent pages. */
const SOURCE = /\.(rs|tsx?|mjs|toml)$/;
const INVENTED = /^test\/repository\//;

/** Each citation of a page that does not exist, as `path: what`.
 *  @param {readonly { name: string, text: string }[]} files the files of the checkout, by path and content */
export function missingPages(files) {
  const pages = new Set(files.map(({ name }) => name.split("/").at(-1)).filter((name) => name?.endsWith(".md")));
  return files
    .filter(({ name }) => SOURCE.test(name) && !INVENTED.test(name))
    .flatMap(({ name, text }) =>
      [...text.matchAll(PAGE)]
        .filter(([, page]) => !pages.has(page))
        .map(([cited]) => `${name}: ${cited} is no page of this repository`),
    );
}

/** Each unknown id as `path: what`, and each id that is defined twice.
 *  @param {readonly { name: string, text: string }[]} files the files of the checkout, by path and content */
export function undefinedDecisions(files) {
  const definitions = files.find(({ name }) => name === DEFINITIONS)?.text ?? "";
  const defined = [...definitions.matchAll(DEFINITION)].map(([, id]) => id);
  const complaints = defined
    .filter((id, at) => defined.indexOf(id) !== at)
    .map((id) => `${DEFINITIONS}: ${id} is defined twice`);
  const known = new Set(defined);
  for (const { name, text } of files) {
    if (!WRITTEN.test(name) || OTHER_IDS.test(name)) continue;
    const unknown = [...text.matchAll(CITATION)]
      .map(([, reliability, id]) => (reliability ? `${reliability} ${id}` : id))
      .filter((id) => !known.has(id) && !known.has(`reliability ${id}`));
    for (const id of new Set(unknown)) complaints.push(`${name}: ${id} is not defined in ${DEFINITIONS}`);
  }
  return complaints;
}
