// Lines of the log for people: colours and times of the clock. In a file of its own because few services need it.
import { prettyFactory } from "pino-pretty";

/** Turns a JSON line of the log into readable text. */
export const readableLine = (isTerminal: boolean): ((line: string) => string) =>
  prettyFactory({ colorize: isTerminal, translateTime: "SYS:HH:MM:ss.l" });
