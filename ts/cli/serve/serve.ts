// `headgate serve`: runs the service until a signal ends it.
import { clock } from "../../clock.ts";
import { loadConfig, readVersion } from "../../config.ts";
import { failToFollow } from "../../handover/predecessor.ts";
import { createLog } from "../../log.ts";
import type { RunningService } from "../../main/running-service.ts";
import { usableCertificates } from "../config.ts";
import { exitCodeOf } from "../exit-code.ts";
import { readFlags } from "../flags.ts";
import { insecureNode, NODE_REMEDY } from "../node-version.ts";
import { keepCompiledCode } from "./compiled-code.ts";
import { firstStart } from "./first-start.ts";
import { createReload } from "./reload.ts";
import { handleSignals } from "./signals.ts";

/** One ^C reaches the service twice through npm, and so does systemd's default; only a later one counts as a second
 *  signal, ms. */
const SAME_SIGNAL_MS = 1_000;
/** Time that a second signal leaves for closing, ms. */
const SECOND_SIGNAL_LIMIT_MS = 1_500;

/** Serves until a signal that stops it (signals.ts). Rejects when the service cannot start. */
export async function runService(flags: Readonly<Record<string, unknown>>): Promise<void> {
  try {
    await run(flags);
  } catch (error) {
    failToFollow(error);
    throw error;
  }
}

async function run(flags: Readonly<Record<string, unknown>>): Promise<void> {
  const signals = handleSignals();
  const load = () => loadConfig(readFlags(flags));
  const loaded = load();
  const { config } = loaded;
  const isTerminal = process.stderr.isTTY === true;
  const insecure = insecureNode(process.versions);
  // Before anything is created or bound.
  const warnings = [
    ...(insecure === null ? [] : [`${insecure}: ${NODE_REMEDY}`]),
    ...usableCertificates(config, clock.now()),
  ];
  if (warnings.length > 0) {
    const log = await createLog(config.log, isTerminal);
    for (const warning of warnings) log.warn(warning);
  }
  keepCompiledCode(config.dataDir);
  const { serve } = await import("../../main.ts");
  const command = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const service = await serve(config, { isTerminal, ...firstStart(config) }, command);
  service.failed.catch((error: unknown) => {
    console.error("headgate: the store failed:", error);
    process.exit(exitCodeOf(error));
  });
  service.handedOver.then(() => end(service, true));
  announce(service);
  const stop = stopper(service);
  service.stopPassedOn.then(() => stop("SIGTERM"));
  signals.serve({
    stop,
    reload: createReload(loaded, load, service),
    ignored: (signal) => service.log.warn({ signal }, "this signal has no meaning here; it is ignored from now on"),
  });
}

/** The first call stops gracefully, a later one immediately. */
function stopper(service: RunningService): (signal: NodeJS.Signals) => void {
  let firstAt: number | null = null;
  return (signal) => {
    // The kernel repeats it every second while the processor time goes on.
    const isLimit = signal === "SIGXCPU";
    if (firstAt !== null) {
      if (isLimit || clock.now() - firstAt < SAME_SIGNAL_MS) return;
      setTimeout(() => process.exit(0), SECOND_SIGNAL_LIMIT_MS).unref();
      service.stopNow();
      return;
    }
    firstAt = clock.now();
    service.log.info({ signal }, "told to stop");
    service.passOnStop();
    // Nobody asked for the end of this service at its limit: it is to be started again.
    end(service, !isLimit);
    // A former process that starts a new one in place of one that died.
    if (service.isVacant()) service.stopNow();
  };
}

/** Ends the service, once, and then the process: with 1 when the service is to be started again. */
function end(service: RunningService, isMeant: boolean): void {
  const ended = async () => {
    await service.stop(isMeant);
    await service.mayExit();
    process.exit(isMeant && !service.isVacant() ? 0 : 1);
  };
  ended().catch((error: unknown) => {
    console.error("headgate: stopping failed:", error);
    process.exit(1);
  });
}

/** Prints the one line on standard output (docs/operating.md). */
function announce({ addresses }: RunningService): void {
  if (process.stdout.isTTY) {
    console.log(
      `Headgate is ready: ${addresses.http}/dashboard/, RTMP ${addresses.rtmp ?? addresses.rtmps}, metrics ${addresses.metrics}`,
    );
  } else {
    console.log(JSON.stringify({ ready: true, ...addresses, version: readVersion() }));
  }
}
