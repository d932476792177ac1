// A setup file of vitest: records which lines of the gateway's rules each test executes. V8 counts, and source maps
// lead back to the lines. What runs between tests, such as loading and `beforeAll`, counts for every test of the file.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { SourceMap } from "node:module";
import { join, relative } from "node:path";
import { afterAll, afterEach, beforeEach } from "vitest";
import { FOLDERS } from "./faults.mjs";

const folder = process.env.MUTANTS_LINES;
if (folder) record(folder);

/** Writes one JSON file per test file: `{ file, between, tests: [{ id, lines }] }`, lines as `path:number`. */
function record(folder) {
  const session = new Session();
  session.connect();
  /** Script id → its path in the repository and the address of its source map; only for the rules' files. */
  const scripts = new Map();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url, sourceMapURL } }) => {
    const path = relative(process.cwd(), url.replace("file://", ""));
    if (FOLDERS.some((each) => path.startsWith(`${each}/`))) scripts.set(scriptId, { path, sourceMapURL });
  });
  ask("Debugger.enable");
  ask("Profiler.enable");
  ask("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const between = new Set();
  const tests = [];
  let file = "";
  beforeEach(() => {
    for (const line of executed()) between.add(line);
  });
  afterEach(({ task }) => {
    file = task.file.filepath;
    tests.push({ id: task.id, lines: executed() });
  });
  afterAll(() => {
    for (const line of executed()) between.add(line);
    session.disconnect();
    const found = { file: relative(process.cwd(), file), between: [...between], tests };
    writeFileSync(join(folder, `${randomUUID()}.json`), JSON.stringify(found));
  });

  /** The answer to a command of the inspector, which arrives before `post` returns. */
  function ask(method, parameters) {
    let answer;
    session.post(method, parameters, (error, result) => {
      if (error) throw new Error(`${method}: ${error.message}`);
      answer = result;
    });
    return answer;
  }

  /** The lines that were executed since the previous call. */
  function executed() {
    const lines = new Set();
    for (const { scriptId, functions } of ask("Profiler.takePreciseCoverage").result) {
      const script = scripts.get(scriptId);
      if (!script) continue;
      script.tokens ??= tokensOf(ask("Debugger.getScriptSource", { scriptId }).scriptSource, script.sourceMapURL);
      for (const line of linesOf(script.tokens, functions)) lines.add(`${script.path}:${line}`);
    }
    return [...lines];
  }
}

/** The position of each word of the running code, and its line in the source. */
function tokensOf(code, sourceMapURL) {
  const map = new SourceMap(JSON.parse(Buffer.from(sourceMapURL.replace(/^data:.*?,/, ""), "base64").toString()));
  let start = 0;
  return code.split("\n").flatMap((text, row) => {
    const found = [...text.matchAll(/\w+|[^\s\w]/g)].flatMap(({ index }) => {
      const { originalLine } = map.findEntry(row, index);
      return originalLine === undefined ? [] : [{ at: start + index, line: originalLine + 1 }];
    });
    start += text.length + 1;
    return found;
  });
}

/** The lines of the words that ran: an inner range takes precedence over the one around it. */
function linesOf(tokens, functions) {
  const ranges = functions
    .flatMap(({ ranges }) => ranges)
    .sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const lines = new Set();
  const open = [];
  let next = 0;
  for (const { at, line } of tokens) {
    while (next < ranges.length && ranges[next].startOffset <= at) open.push(ranges[next++]);
    while (open.length > 0 && open.at(-1).endOffset <= at) open.pop();
    if ((open.at(-1)?.count ?? 0) > 0) lines.add(line);
  }
  return lines;
}
