// Starts the service of a configuration, phase by phase, and stops it gracefully.
import type { Config } from "./config.ts";
import { forbidCoreDumps } from "./core-dumps.ts";
import { StoreFailed, StoreUnavailable } from "./errors.ts";
import { readInherited } from "./handover/inherited.ts";
import { openManager } from "./handover/manager.ts";
import { openPredecessor } from "./handover/predecessor.ts";
import { createLog } from "./log.ts";
import { type Beginning, stopAll } from "./main/beginning.ts";
import { startCore } from "./main/core.ts";
import { joinOthers, type Terminal } from "./main/joining.ts";
import { openPorts } from "./main/ports.ts";
import type { RunningService } from "./main/running-service.ts";
import { startServing } from "./main/serving.ts";
import { openStoreAndCluster } from "./main/store.ts";

/** Starts everything. Rejects with `ConfigInvalid`, `PortTaken`, `StoreUnavailable` or `MediaCoreMissing`, and releases
 *  everything it had opened. `terminal` shows the first administrator's key and password, with the address of the
 *  dashboard, to the person who starts a new store; they are never logged. `command`: program and arguments of this
 *  process. */
export async function serve(config: Config, terminal: Terminal, command: readonly string[]): Promise<RunningService> {
  const log = await createLog(config.log, terminal.isTerminal);
  forbidCoreDumps(log);
  const inherited = readInherited();
  let current = config;
  const beginning: Beginning = {
    config,
    current: () => current,
    reloads: [],
    log,
    started: [],
    inherited,
    former: inherited.isSuccessor ? openPredecessor() : null,
    manager: openManager(inherited.manager, log),
    command,
  };
  const reload = (next: Config): void => {
    current = next;
    log.level = next.log.level;
    for (const apply of beginning.reloads) apply(next);
  };
  try {
    const opened = await openStoreAndCluster(beginning);
    const core = await startCore(beginning, opened);
    const ports = await openPorts(beginning, opened, core);
    const addresses = await joinOthers(beginning, terminal, opened, core, ports);
    return await startServing(beginning, opened, core, ports, { addresses, reload });
  } catch (error) {
    await stopAll(beginning.started);
    if (!(error instanceof StoreFailed)) throw error;
    const where = config.databaseUrl === null ? `the store in ${config.dataDir}` : "the database";
    throw new StoreUnavailable(`cannot use ${where}: ${error.message}`, { cause: error });
  }
}
