// The service as its process sees it, from the end of its start.
import type { Logger } from "pino";
import type { Config } from "../config.ts";
import type { Addresses } from "../own-addresses.ts";

export interface RunningService {
  readonly addresses: Addresses;
  /** Resolves when a new process has taken over: call `stop` then. Publishes of this one continue until their end. */
  readonly handedOver: Promise<void>;
  /** Whether that process has died, and no other one has taken its place: the service then has to be started again
   *  after this one ends. */
  isVacant(): boolean;
  /** Resolves when the process may exit, after `stop`: where that would end the new process too, when the new one has
   *  exited. */
  mayExit(): Promise<void>;
  /** The service is to stop, whichever process serves: a former one passes that on where only it can be reached. */
  passOnStop(): void;
  /** Resolves when a former process passes that on. */
  readonly stopPassedOn: Promise<void>;
  /** Not ready, no new publish, running ones until `drain_s`; then everything ends and every publish_done is sent or
   *  kept for the next start. `isMeant`: the service is to stop, so no former process replaces this one, which waits for
   *  their publishes, too. */
  stop(isMeant: boolean): Promise<void>;
  /** Cuts the wait of `stop` short: running publishes end immediately. */
  stopNow(): void;
  /** Applies settings marked `reloads` and reads the certificates again; ignores all other settings. */
  reload(next: Config): void;
  readonly log: Logger;
  /** Rejects when the store fails permanently while the service runs; nothing works after that. */
  readonly failed: Promise<never>;
}
