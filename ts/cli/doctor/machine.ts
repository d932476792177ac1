// Doctor: what the machine provides: file descriptors, a correct clock, a writable data directory.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, type StatsFs, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config.ts";
import { reasonOf } from "../../reason.ts";
import { FREE_AT_LEAST_BYTES } from "../../store/health.ts";
import { type Finding, good } from "./finding.ts";

/** Each connection uses one (docs/operating.md). */
const DESCRIPTORS_WANTED = 65_536;
/** At least needed in addition to RTMP, for HTTP, WebRTC over TCP and the store. */
const DESCRIPTORS_KEPT = 64;
/** With less free space logs, the store's journal and a backup soon fill a disk, bytes. */
const SPACE_WANTED_BYTES = 500e6;
/** The tolerance of receivers that verify signed webhook calls (Standard Webhooks), ms. */
const CLOCK_LIMIT_MS = 5 * 60_000;
/** A clock that is off by more is not synchronised; HTTP gives the time only in whole seconds, ms. */
const CLOCK_WORTH_A_WORD_MS = 10_000;
const TOOL_LIMIT_MS = 2_000;

/** `limits`: the text of /proc/self/limits (proc(5)). */
export function descriptors(config: Config | null, limits = readLimits()): readonly Finding[] {
  const soft = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
  if (Number.isNaN(soft)) return []; // not Linux, or unlimited
  const what = "file descriptors";
  const wanted = config?.rtmp.limits.connections ?? 0;
  if (wanted + DESCRIPTORS_KEPT > soft) {
    return [
      {
        what,
        state: "bad",
        detail: `${soft}, fewer than limits.rtmp_connections (${wanted}) needs`,
        why: "when they are used up, further connections fail, and so does the store",
        remedy: `raise the limit (ulimit -n, LimitNOFILE= of systemd, --ulimit of a container) to ${wanted + 1_024}`,
      },
    ];
  }
  if (soft >= DESCRIPTORS_WANTED) return [good(what, String(soft))];
  return [
    {
      what,
      state: "warning",
      detail: `${soft}; ${DESCRIPTORS_WANTED} are recommended`,
      why: "each broadcaster, player and upstream uses one; a quarter is reserved for HTTP and the store",
      remedy: "raise the limit: ulimit -n 65536, LimitNOFILE=65536 of systemd, --ulimit of a container",
    },
  ];
}

function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}

/** Another source of the time. */
export interface Reference {
  readonly source: string;
  /** Epoch ms. */
  readonly at: number;
  /** When it was read, on our clock. */
  readonly readAt: number;
}

/** `newest`: the latest timestamp in the store, epoch ms; null for none. `now`: epoch ms. */
export function clockFinding(
  references: readonly Reference[],
  newest: number | null,
  now: number,
  isKept = isSynchronised(),
): Finding {
  const what = "clock";
  const why =
    "webhook signatures, web tokens and certificates are valid for a limited time: customers reject a signature that is off by five minutes";
  const remedy = "synchronise it with chrony or systemd-timesyncd: timedatectl set-ntp true";
  const text = (ms: number) => `${Math.round(Math.abs(ms) / 1_000)} s`;
  for (const { source, at, readAt } of references) {
    const off = readAt - at;
    if (Math.abs(off) < CLOCK_WORTH_A_WORD_MS) continue;
    const detail = `${text(off)} ${off > 0 ? "ahead of" : "behind"} ${source}`;
    return { what, state: Math.abs(off) >= CLOCK_LIMIT_MS ? "bad" : "warning", detail, why, remedy };
  }
  if (newest !== null && newest - now > CLOCK_WORTH_A_WORD_MS) {
    const detail = `${text(newest - now)} behind the newest entry of the store: it was set back`;
    return { what, state: newest - now >= CLOCK_LIMIT_MS ? "bad" : "warning", detail, why, remedy };
  }
  if (isKept === false) return { what, state: "warning", detail: "it is not synchronised (NTP)", why, remedy };
  const sources = references.map(({ source }) => source);
  const agrees = sources.length === 0 ? "not compared with another clock" : `agrees with ${sources.join(", ")}`;
  return good(what, isKept === true ? `synchronised by NTP, ${agrees}` : agrees);
}

/** Whether the clock is synchronised according to systemd; null where it does not say. */
function isSynchronised(): boolean | null {
  const { status, stdout } = spawnSync("timedatectl", ["show", "-p", "NTPSynchronized", "--value"], {
    encoding: "utf8",
    timeout: TOOL_LIMIT_MS,
  });
  if (status !== 0) return null;
  return stdout.trim() === "yes";
}

/** Whether the service could write to the folder of its keys and the embedded store; no finding when there is no folder
 *  yet. */
export function dataDirectory({ dataDir, databaseUrl }: Config): readonly Finding[] {
  if (!existsSync(dataDir)) return [];
  const what = `data directory ${dataDir}`;
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    return [
      {
        what,
        state: "bad",
        detail: `cannot be written: ${reasonOf(error)}`,
        why: "it holds the keys and the embedded store: headgate serve exits with 4",
        remedy: "give it to the user that the service runs as (chown -R), mode 0700",
      },
    ];
  }
  return [diskSpace({ dataDir, databaseUrl }, statfsSync(dataDir))];
}

/** The file in which the first start leaves its secrets. */
export function firstStart({ dataDir }: Pick<Config, "dataDir">): readonly Finding[] {
  const path = join(dataDir, "first-start.txt");
  if (!existsSync(path)) return [];
  return [
    {
      what: path,
      state: "warning",
      detail: "is still there",
      why: "it has the first API key and the password of admin as plain text",
      remedy: "store them elsewhere, then delete the file",
    },
  ];
}

/** `disk`: what statfs(2) says of the data directory. */
export function diskSpace(
  { dataDir, databaseUrl }: Pick<Config, "dataDir" | "databaseUrl">,
  { bavail, bsize, files, ffree }: Pick<StatsFs, "bavail" | "bsize" | "files" | "ffree">,
): Finding {
  const what = `data directory ${dataDir}`;
  const free = bavail * bsize;
  const detail = `${Math.round(free / 1e6)} MB free`;
  const remedy = "free some space, or move the data directory to a larger disk";
  // Some file systems have no fixed number of files: they report none at all.
  const hasNoFiles = files > 0 && ffree === 0;
  if (hasNoFiles || free < FREE_AT_LEAST_BYTES) {
    const isEmbedded = databaseUrl === null;
    return {
      what,
      state: isEmbedded ? "bad" : "warning",
      remedy,
      detail: hasNoFiles ? "the disk can hold no further file (df -i)" : `the disk is full: ${detail}`,
      why: isEmbedded
        ? "the store cannot be written: new publishes are rejected, and a service does not start for the first time"
        : "a capture or a changed key cannot be written; the store is elsewhere",
    };
  }
  if (free >= SPACE_WANTED_BYTES) return good(what, detail);
  return { what, state: "warning", detail, remedy, why: "new publishes are rejected while the disk is full" };
}
