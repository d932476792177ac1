// Reliability R1: WHIP sessions for hours, most passed through and some transcoded.
import { udpDrops } from "../_process.mjs";
import { freePort } from "../_servers.mjs";
import { watchWindows } from "../_windows.mjs";
import { endsOf, faultsWhere, heapMb, load, startService } from "./_service.mjs";

export const title = "60 passthrough and 20 AAC sessions for two hours";

const SECONDS = 7_200;
const PASSED = 60;
const TRANSCODED = 20;
const SLOPE_LIMIT_MB_PER_HOUR = 1;
/** A slope is meaningful after this time, s; before that, buffers and V8 are still growing. */
const SLOPE_FROM_S = 1_800;
const WINDOWS = 24;

export async function endure(share) {
  const seconds = Math.max(20, Math.round(SECONDS * share));
  const few = share < 0.01 ? 0.1 : 1;
  const [passed, transcoded] = [Math.round(PASSED * few), Math.round(TRANSCODED * few)];
  const server = await startService(passed + transcoded);
  try {
    const sinks = [await freePort(), await freePort()];
    const parts = [server.streams.slice(0, passed), server.streams.slice(passed)];
    for (const [at, streams] of parts.entries()) {
      for (const stream of streams) await server.pushTo(stream, sinks[at]);
    }
    const drops = udpDrops();
    // Printed as they happen: for a run of hours it matters when something went wrong.
    let ended = 0;
    const startedAt = performance.now();
    const printing = [];
    const print = async (window) => {
      // The load lasts as long, and begins later.
      const isOver = performance.now() - startedAt > seconds * 1_000;
      ended = isOver ? ended : endsOf(server.customer).done;
      window.heap_mb = await heapMb(server.metrics);
      console.log(JSON.stringify({ ...window, ended }));
    };
    const stop = watchWindows(server.pid, passed + transcoded, seconds / WINDOWS, (window) => {
      printing.push(print(window));
    });
    const publish = (at, sound) => {
      const where = [`127.0.0.1:${sinks[at]}`, server.http, server.streamUrl];
      return load("whip", ...where, parts[at].map(({ name }) => name).join(","), seconds, sound, "gcm");
    };
    const [opus, aac] = await Promise.all([publish(0, "opus"), publish(1, "stereo")]);
    const windows = stop();
    await Promise.all(printing);
    const steady = windows.slice(Math.floor(windows.length / 4));
    const last = (name) => [steady[0]?.[name], steady.at(-1)?.[name]];
    const perHour = (read) => slopeOf(steady.map(read)) * (3_600 / (seconds / WINDOWS));
    const slope = perHour(({ resident_mb }) => resident_mb);
    // V8 grows and shrinks its heap as it likes; what the media core leaves behind shows in the rest.
    const slopeBesideHeap = perHour(({ resident_mb, heap_mb }) => resident_mb - heap_mb);
    const isLong = seconds >= SLOPE_FROM_S;
    const figures = {
      seconds,
      units: opus.sent + aac.sent,
      lost: opus.lost + aac.lost,
      ended,
      aacGaps: aac.aac_gaps,
      kernelDrops: udpDrops() - drops,
      residentMb: last("resident_mb"),
      heapMb: last("heap_mb"),
      mbPerHour: Number(slope.toFixed(2)),
      mbPerHourBesideHeap: Number(slopeBesideHeap.toFixed(2)),
      cpuMsPerStreamSecond: last("cpu_ms_per_stream_second"),
      descriptors: last("descriptors"),
      threads: last("threads"),
    };
    const faults = faultsWhere({
      [`${ended} sessions ended early`]: ended > 0,
      "units were lost": figures.lost > 0,
      "sound has gaps": figures.aacGaps > 0,
      [`memory grows by ${figures.mbPerHour} MB an hour`]: isLong && slope > SLOPE_LIMIT_MB_PER_HOUR,
      "descriptors grow": isLong && figures.descriptors[1] > figures.descriptors[0],
      "threads grow": isLong && figures.threads[1] > figures.threads[0],
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}

/** Slope of a line through the values, by least squares; per value. */
function slopeOf(values) {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const over = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0);
  const under = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return under === 0 ? 0 : over / under;
}
