// The log: pino to standard error, readable on a terminal, JSON elsewhere. Callers pass nothing secret: stream names
// without what follows `?`, and never keys or tokens.
import { writeSync } from "node:fs";
import { type DestinationStream, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import type { Config } from "./config.ts";
import { InternalError, ServiceError } from "./errors.ts";
import { printableJson } from "./text/terminal.ts";

const STANDARD_ERROR = 2;
/** Lines that cannot be written yet, bytes; further ones are dropped, and counted. */
const WAITING_LIMIT_BYTES = 1 << 20;
/** How often pending lines are retried when no new one comes, and for how long at the end of the process. */
const RETRY_MS = 50;
const LAST_TRY_MS = 1_000;
/** After a failed write no other is tried for this long: creating the error costs more than the line. */
const FAILURE_LASTS_MS = 1;

/** Message and stack of an error; no stack of an expected one, such as a full disk, since its message says what has
 *  happened and there may be thousands. Other members are left out: libraries store their input there, such as the whole
 *  URL that could not be parsed, or a row. */
function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack, code } = stdSerializers.err(error);
  const isExpected = error instanceof ServiceError && !(error instanceof InternalError);
  return { type, message, ...(isExpected ? {} : { stack }), ...(code === undefined ? {} : { code }) };
}

/** Synchronous, so that the last line before an exit is written too. `to`: the destination when it is not standard
 *  error. */
export async function createLog(config: Config["log"], isTerminal: boolean, to?: DestinationStream): Promise<Logger> {
  const pretty = config.format === "pretty" || (config.format === "auto" && isTerminal);
  const { level } = config;
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime, serializers: { err: errorForLog } };
  if (to !== undefined) return pino(options, to);
  const lines = patientLines(STANDARD_ERROR, (lost) =>
    log.warn({ lost }, "lines of the log were lost: nothing read them"),
  );
  const log = pino(options, pretty ? await readable(lines, isTerminal) : lines);
  return log;
}

async function readable(lines: DestinationStream, isTerminal: boolean): Promise<DestinationStream> {
  const { readableLine } = await import("./text/readable-log.ts"); // seldom wanted
  const readable = readableLine(isTerminal);
  return { write: (line) => lines.write(readable(printableJson(line))) };
}

/** Never blocks on the reader, and survives failed writes: a full disk or a stalled reader costs log lines, but no
 *  stream. Lines wait up to the limit; `onRoom` receives the number of those dropped beyond it. */
function patientLines(file: number, onRoom: (lost: number) => void): DestinationStream {
  // libuv makes a pipe or socket non-blocking when it opens it.
  void process.stderr;
  const waiting: Buffer[] = [];
  let [bytes, lost, failedAt] = [0, 0, 0];
  let isRetried = false;
  const wait = (line: Buffer) => {
    if (bytes + line.length > WAITING_LIMIT_BYTES) {
      lost++;
      return;
    }
    waiting.push(line);
    bytes += line.length;
    retryLater();
  };
  /** Returns the unwritten rest of a line. Errors such as EAGAIN and ENOSPC are temporary. */
  const put = (line: Buffer): Buffer => {
    try {
      return line.subarray(writeSync(file, line));
    } catch {
      failedAt = performance.now();
      return line;
    }
  };
  const putWaiting = () => {
    for (let line = waiting[0]; line !== undefined; line = waiting[0]) {
      const rest = put(line);
      bytes -= line.length - rest.length;
      if (rest.length > 0) {
        waiting[0] = rest;
        return;
      }
      waiting.shift();
    }
    if (lost === 0) return;
    const count = lost;
    lost = 0;
    onRoom(count);
  };
  const retryLater = () => {
    if (isRetried) return;
    isRetried = true;
    setTimeout(() => {
      isRetried = false;
      putWaiting();
      if (waiting.length > 0) retryLater();
    }, RETRY_MS).unref();
  };
  process.on("exit", () => {
    const deadline = performance.now() + LAST_TRY_MS;
    putWaiting();
    while (waiting.length > 0 && performance.now() < deadline) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      putWaiting();
    }
  });
  return {
    write(text) {
      if (performance.now() - failedAt > FAILURE_LASTS_MS) putWaiting();
      const line = Buffer.from(text);
      const rest = waiting.length > 0 ? line : put(line);
      if (rest.length > 0) wait(rest);
    },
  };
}
