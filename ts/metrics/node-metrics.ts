// Metrics for alerts about a node: whether its store can be written, how full its disk and how busy its workers are,
// when its certificates expire, and its clock. Names are a contract with operators.
import { statfs } from "node:fs/promises";
import { Gauge, type Registry } from "prom-client";
import { inTime } from "../in-time.ts";
import type { WorkerStatus } from "../media/workers.ts";

/** How long a scrape waits for the free disk space, ms. */
const READ_LIMIT_MS = 2_000;

export interface WatchedNode {
  /** Epoch ms. */
  readonly clock: { now(): number };
  /** Why the store cannot be written; null while it can. */
  readonly storeProblem: () => string | null;
  /** The data directory. */
  readonly folder: string;
  readonly workerStatus: () => readonly WorkerStatus[];
  /** When each certificate expires, epoch ms; null when it cannot be read. */
  readonly certificates: () => readonly { readonly section: string; readonly endsAt: number | null }[];
}

/** Reads all values at each scrape. Call once. */
export function watchNode(registry: Registry, node: WatchedNode): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read());
      },
    });
  gauge("headgate_store_up", "1 while the store can be written, else 0", () => (node.storeProblem() === null ? 1 : 0));
  gauge("headgate_data_dir_free_bytes", "Free space on the disk of the data directory", () => freeBytes(node.folder));
  gauge("headgate_time_seconds", "The clock of the service, Unix time", () => node.clock.now() / 1_000);
  new Gauge({
    name: "headgate_certificate_expiry_timestamp_seconds",
    help: "When the certificate of a port expires, Unix time",
    labelNames: ["section"],
    registers,
    collect() {
      this.reset();
      for (const { section, endsAt } of node.certificates())
        this.set({ section }, endsAt === null ? Number.NaN : endsAt / 1_000);
    },
  });
  new Gauge({
    name: "headgate_media_worker_busy_ratio",
    help: "Share of a core that a media worker's thread takes, over the last seconds",
    labelNames: ["worker"],
    registers,
    collect() {
      this.reset();
      for (const [worker, { load }] of node.workerStatus().entries()) this.set({ worker: String(worker) }, load);
    },
  });
}

/** `troubles`: how many running publishes have each of them at present. */
export function watchTroubles(registry: Registry, troubles: () => Readonly<Record<string, number>>): void {
  new Gauge({
    name: "headgate_publish_troubles",
    help: "Live publishes that currently have a problem, by kind",
    labelNames: ["trouble"],
    registers: [registry],
    collect() {
      for (const [trouble, count] of Object.entries(troubles())) this.set({ trouble }, count);
    },
  });
}

/** NaN when the system does not answer in time. */
async function freeBytes(folder: string): Promise<number> {
  const read = statfs(folder).then(({ bavail, bsize }) => bavail * bsize);
  return await inTime(READ_LIMIT_MS, read, Number.NaN).catch(() => Number.NaN);
}
