// The cost of a long run in each of its windows: a process's processor time, memory, descriptors and threads.
import { cpuSeconds, descriptors, residentKb, threadSeconds, threads } from "./_process.mjs";

/** Starts measuring; `stop` returns the windows, each of which ends when the next one begins. */
export function watchWindows(pid, streams, windowSeconds, print) {
  const windows = [];
  let last = sample(pid);
  const close = () => {
    const now = sample(pid);
    const took = now.time - last.time;
    const perStream = (seconds) => Number(((seconds * 1_000) / (streams * took)).toFixed(3));
    const window = {
      seconds: Math.round(took),
      cpu_ms_per_stream_second: perStream(now.cpu - last.cpu),
      media_cpu_ms_per_stream_second: perStream(now.media.cpu - last.media.cpu),
      media_waited_ms_per_stream_second: perStream(now.media.waited - last.media.waited),
      resident_mb: Number((now.kb / 1_024).toFixed(1)),
      descriptors: now.descriptors,
      threads: now.threads,
    };
    windows.push(window);
    last = now;
    print(window);
  };
  const timer = setInterval(close, windowSeconds * 1_000);
  return () => {
    clearInterval(timer);
    // The rest counts as a window if it is nearly complete.
    if (performance.now() / 1_000 - last.time > windowSeconds * 0.9) close();
    return windows;
  };
}

const sample = (pid) => ({
  time: performance.now() / 1_000,
  cpu: cpuSeconds(pid),
  media: threadSeconds(pid, "media-"),
  kb: residentKb(pid),
  descriptors: descriptors(pid),
  threads: threads(pid),
});
