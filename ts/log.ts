// The log: pino to standard error, readable on a terminal, JSON elsewhere. Nothing secret is handed to it: stream names
// go in without what follows `?`, keys and tokens never.
import { type DestinationStream, destination, type Logger, pino, stdSerializers, stdTimeFunctions } from "pino";
import type { Config } from "./config.ts";

const STANDARD_ERROR = 2;
/** Of lines that cannot be written yet; later ones are lost. */
const WAITING_LIMIT_BYTES = 1 << 20;

/** Of an error what it says and where it happened. Its other members are left out: libraries put there what they were
 *  given, such as the whole URL that could not be parsed, or a row. */
function errorForLog(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack, code } = stdSerializers.err(error);
  return { type, message, stack, ...(code === undefined ? {} : { code }) };
}

/** Synchronous, so that the last line before an exit is written too. `to`: where to, when not to standard error. */
export async function createLog(config: Config["log"], isTerminal: boolean, to?: DestinationStream): Promise<Logger> {
  const pretty = config.format === "pretty" || (config.format === "auto" && isTerminal);
  const { level } = config;
  const options = { level, base: null, timestamp: stdTimeFunctions.isoTime, serializers: { err: errorForLog } };
  if (to !== undefined) return pino(options, to);
  if (!pretty) return pino(options, standardError());
  const { PinoPretty } = await import("pino-pretty"); // seldom wanted
  const look = { colorize: isTerminal, translateTime: "SYS:HH:MM:ss.l" };
  return pino(options, PinoPretty({ ...look, destination: standardError(), sync: true }));
}

/** Goes on when a line cannot be written: a disk that is full of logs ends no stream. What waits is written when there is
 *  room, up to the limit. */
function standardError(): ReturnType<typeof destination> {
  const stream = destination({ dest: STANDARD_ERROR, sync: true, maxLength: WAITING_LIMIT_BYTES });
  stream.on("error", () => {});
  // Past the limit nothing is tried by itself any more.
  stream.on("drop", () => {
    try {
      stream.flushSync();
    } catch {}
  });
  return stream;
}
