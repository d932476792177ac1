// Where in the program a new process failed, for the person who upgrades: the file and the line.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** How long reading the program once more may take, ms. */
const READ_LIMIT_MS = 10_000;
/** Everything that a service imports. */
const ENTRIES = ["../cli/main.js", "../main.js", "../media/open.js"].map((path) => new URL(path, import.meta.url));

/** ` (FILE:LINE)` for an error whose cause is the stack of the new process; empty when it is not known. Never rejects. */
export async function locationOfFault(error: unknown): Promise<string> {
  const stack = error instanceof Error && typeof error.cause === "string" ? error.cause : "";
  const [first = ""] = stack.split("\n");
  const location =
    headOf(stack) ?? frameOf(stack) ?? (first.startsWith("SyntaxError") ? await locationOfSyntaxError() : null);
  return location === null ? "" : ` (${location})`;
}

/** Node puts the location of a fault in an import before the message. */
function headOf(text: string): string | null {
  const [, url, line] = /^(file:[^\n]+):(\d+)$/m.exec(text) ?? [];
  return url === undefined ? null : `${fileURLToPath(url)}:${line}`;
}

/** The innermost function that is not Node's own. */
function frameOf(stack: string): string | null {
  const [, url, line] = /^ +at .*?(file:[^\n)]+?):(\d+):\d+\)?$/m.exec(stack) ?? [];
  return url === undefined ? null : `${fileURLToPath(url)}:${line}`;
}

/** Only what Node prints when it exits names the location of an error of syntax: the program is imported once more. */
async function locationOfSyntaxError(): Promise<string | null> {
  for (const entry of ENTRIES.filter((each) => existsSync(each))) {
    const read = ["--input-type=module", "--eval", `await import(${JSON.stringify(entry.href)})`];
    const printed = await new Promise<string>((resolve) => {
      const options = { timeout: READ_LIMIT_MS, killSignal: "SIGKILL" } as const;
      execFile(process.execPath, read, options, (_, __, stderr) => resolve(stderr));
    });
    const location = headOf(printed);
    if (location !== null) return location;
  }
  return null;
}
