// The two Chromium programs of Debian. The one without a window uses half the CPU time of the full one in headless
// mode, but lacks what concerns a user: permission prompts, screen wake locks.
import { isWholeRun } from "./whole-run.ts";

/** The program that people use. */
export const CHROMIUM = "/usr/bin/chromium";
/** The same engine, for pages that need nothing else. */
export const HEADLESS_SHELL = "/usr/bin/chromium-headless-shell";
/** For broadcasts by scripts: in the whole run by the program that people use. */
export const BROADCASTER = isWholeRun ? CHROMIUM : HEADLESS_SHELL;
