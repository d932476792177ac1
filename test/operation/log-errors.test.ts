// How errors appear in the log: one short line for what is expected, such as a full disk, and a stack only for faults of
// the program.
import { expect, test } from "vitest";
import { InternalError, StoreFailed, StoreUnavailable } from "../../ts/errors.ts";
import { createLog } from "../../ts/log.ts";

async function logged(err: unknown): Promise<{ readonly err: Record<string, string> }> {
  const lines: string[] = [];
  const log = await createLog({ level: "info", format: "json" }, false, { write: (line) => void lines.push(line) });
  log.error({ err }, "it failed");
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? "") as { err: Record<string, string> };
}

test.each([
  new StoreFailed("database or disk is full"),
  new StoreFailed("connection refused", { cause: new TypeError("inner") }),
  new StoreUnavailable("cannot create a store in /data"),
])("%s is logged without a stack", async (error) => {
  const { err } = await logged(error);
  expect(err).toEqual({
    type: error.constructor.name,
    message: expect.stringContaining(error.message),
    code: error.code,
  });
});

test.each([new TypeError("x is not a function"), new InternalError("internal"), new Error("unexpected")])(
  "%s is logged with its stack",
  async (error) => {
    expect((await logged(error)).err.stack).toContain("log-errors.test.ts");
  },
);
