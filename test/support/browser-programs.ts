// Chromium's two programs of Debian. The one without a window costs half the CPU time of the whole one without its window,
// and lacks what belongs to a person: permissions that are asked for, a screen that stays on.
import { isWholeRun } from "./whole-run.ts";

/** What people use. */
export const CHROMIUM = "/usr/bin/chromium";
/** The same engine for pages that need no more than it. */
export const HEADLESS_SHELL = "/usr/bin/chromium-headless-shell";
/** For broadcasts by scripts: in the whole run by what people use. */
export const BROADCASTER = isWholeRun ? CHROMIUM : HEADLESS_SHELL;
