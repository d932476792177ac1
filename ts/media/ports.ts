// Receive buffers and drop counters of the media workers' UDP ports. The core itself binds the ports.
import type { Logger } from "pino";

/** Receive buffer that the core requests for each media port, as crates/ingest/src/reactor/udp.rs does. */
export const RECEIVE_BUFFER_BYTES = 4 << 20;

/** Allows that buffer size until the next reboot of the machine. */
const RAISE_COMMAND = `sysctl -w net.core.rmem_max=${RECEIVE_BUFFER_BYTES}`;

/** Advice for people when the kernel grants only `granted` bytes of what was requested. */
export function smallBufferAdvice(granted: number): string {
  return `the kernel buffers ${granted} bytes per media port, ${RECEIVE_BUFFER_BYTES} were requested: run \`${RAISE_COMMAND}\``;
}

/** Logs one warning at the start when the kernel granted less than requested; `granted` is null when it did not. */
export function warnOfSmallBuffer(granted: number | null, log: Pick<Logger, "warn">): void {
  if (granted === null) return;
  log.warn({ granted, requested: RECEIVE_BUFFER_BYTES }, smallBufferAdvice(granted));
}

/** Datagrams that the kernel dropped on `ports` because they were not read in time, since the ports were bound; null
 *  when none of them is bound. `tables`: /proc/net/udp and /proc/net/udp6 (proc(5)). The core counts its own drops the
 *  same way; this works for another process, without a core. */
export function kernelDropsOf(tables: readonly string[], ports: readonly number[]): number | null {
  const drops = tables
    .flatMap((table) => table.split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local]) => ports.includes(Number.parseInt(local?.split(":")[1] ?? "", 16)))
    .map((columns) => Number(columns.at(-1)));
  return drops.length === 0 ? null : drops.reduce((sum, each) => sum + (Number.isInteger(each) ? each : 0), 0);
}
