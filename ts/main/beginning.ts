// What every phase of a start has at hand, and how what has been started is stopped.
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import type { Inherited } from "../handover/inherited.ts";
import type { ServiceManager } from "../handover/manager.ts";
import type { Predecessor } from "../handover/predecessor.ts";

export interface Beginning {
  readonly config: Config;
  /** The configuration as last reloaded. */
  readonly current: () => Config;
  /** Apply a new configuration. */
  readonly reloads: ((next: Config) => void)[];
  readonly log: Logger;
  /** Functions that stop what has been started, called in reverse order. */
  readonly started: (() => Promise<void>)[];
  readonly inherited: Inherited;
  /** The process that this one replaces; null for none. */
  readonly former: Predecessor | null;
  readonly manager: ServiceManager;
  /** Program and arguments of this process. */
  readonly command: readonly string[];
}

export async function stopAll(started: Beginning["started"]): Promise<void> {
  for (const stop of started.splice(0).reverse()) await stop();
}
