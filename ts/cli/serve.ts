// `headgate serve`: runs the service until a signal ends it.
import { loadConfig, readVersion } from "../config.ts";
import { createLog } from "../log.ts";
import { clock, type RunningService, serve } from "../main.ts";
import { usableCertificates } from "./config.ts";
import { exitCodeOf } from "./exit-code.ts";
import { readFlags } from "./flags.ts";

/** What a second signal leaves for the goodbye, ms. */
const SECOND_SIGNAL_LIMIT_MS = 1_500;

/** Serves until SIGTERM or SIGINT. Rejects when the service cannot start. */
export async function runService(flags: Readonly<Record<string, unknown>>): Promise<void> {
  const { config } = loadConfig(readFlags(flags));
  const isTerminal = process.stderr.isTTY === true;
  // Before anything is made or bound.
  const warnings = usableCertificates(config, clock.now());
  if (warnings.length > 0) {
    const log = createLog(config.log, isTerminal);
    for (const warning of warnings) log.warn(warning);
  }
  // A signal while the service starts is obeyed once it has started.
  let stop = (): void => {
    signalled = true;
  };
  let signalled = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop());
  const service = await serve(config, { isTerminal, announceKey, announcePassword });
  service.failed.catch((error: unknown) => {
    console.error("headgate: the store failed:", error);
    process.exit(exitCodeOf(error));
  });
  stop = stopper(service);
  announce(service);
  if (signalled) stop();
}

/** The first call stops gracefully, the second at once. */
function stopper(service: RunningService): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls > 1) {
      setTimeout(() => process.exit(0), SECOND_SIGNAL_LIMIT_MS).unref();
      service.hurry();
      return;
    }
    service.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error("headgate: stopping failed:", error);
        process.exit(1);
      },
    );
  };
}

/** The one line on standard output (operations.md §2). */
function announce({ addresses }: RunningService): void {
  if (process.stdout.isTTY) {
    console.log(
      `Headgate is ready: ${addresses.http}/dashboard/, RTMP ${addresses.rtmp}, metrics ${addresses.metrics}`,
    );
  } else {
    console.log(JSON.stringify({ ready: true, ...addresses, version: readVersion() }));
  }
}

function announceKey(key: string): void {
  const lines = [
    "",
    "  This is a new store. Its administrator API key, shown this once:",
    "",
    `      ${key}`,
    "",
    "  Send it as the header x-service-apikey. Keep it where secrets are kept.",
    "",
  ];
  console.error(lines.join("\n"));
}

function announcePassword(password: string, dashboard: string): void {
  const lines = [
    "",
    `  The dashboard is at ${dashboard}`,
    "  The first person signs in as admin. The password, shown this once:",
    "",
    `      ${password}`,
    "",
  ];
  console.error(lines.join("\n"));
}
