// Hands the service over to a new process, which starts beside this one, listens on the same sockets, and accepts all
// new connections from then on. Until it listens nothing changes for anybody, and any failure is rolled back.
import type { Logger } from "pino";
import { UpgradeFailed } from "../errors/upgrade-failed.ts";
import { reasonOf } from "../reason.ts";
import { placeOfFault } from "./fault-place.ts";
import type { SocketName } from "./inherited.ts";
import type { ServiceState } from "./state.ts";
import { type Successor, startSuccessor } from "./successor.ts";

export interface HandoverDeps {
  readonly state: ServiceState;
  readonly log: Logger;
  /** Program and arguments of the new process. */
  readonly command: readonly string[];
  /** The sockets that it inherits. */
  readonly sockets: () => readonly (readonly [name: SocketName, descriptor: number])[];
  /** Makes this process reachable for others beside the new one, and rolls that back. */
  readonly stepAside: () => Promise<void>;
  readonly stepBack: () => Promise<void>;
  /** Reads which nodes are present. */
  readonly look: () => Promise<void>;
  /** Called when the new process listens and this one stops listening. */
  readonly leave: (successor: Pick<Successor, "pid" | "isGone">) => Promise<void>;
  /** The handover failed. */
  readonly failed: () => void;
  /** Number of publishes running here. */
  readonly running: () => number;
  /** `upgradeS`: how long the new process may take to start, without the time of migrations, and then to listen. */
  readonly limits: () => { readonly upgradeS: number; readonly drainS: number };
}

export interface HandedOver {
  readonly pid: number;
  readonly former: number;
  /** Publishes that stay with the former process, and for how long they may, s. */
  readonly publishes: number;
  readonly drainS: number;
}

/** One at a time. `say` reports progress to a person. Rejects with `UpgradeFailed`: this service then continues as
 *  before. */
export type Handover = (say: (line: string) => void) => Promise<HandedOver>;

export function createHandover(deps: HandoverDeps): Handover {
  const { state, log, running } = deps;

  async function handOver(say: (line: string) => void): Promise<HandedOver> {
    const { upgradeS, drainS } = deps.limits();
    await deps.stepAside();
    const successor = startSuccessor(deps.command, deps.sockets());
    log.info({ successor: successor.pid }, "the new process starts");
    say(`The new process is ${successor.pid}.`);
    try {
      await successor.heard("prepared", upgradeS * 1_000);
      if (state.word() !== "handing_over") throw new UpgradeFailed("the service was told to stop meanwhile");
      say("It has started, and is beginning to listen.");
      successor.tell("listen");
      await successor.heard("listening", upgradeS * 1_000);
    } catch (error) {
      await successor.kill();
      throw error;
    }
    // From here on the handover is final: the new process listens, and continues even if this one dies.
    await deps.look().catch((err: unknown) => log.warn({ err }, "the new process could not be looked up in the store"));
    await deps.leave(successor);
    successor.tell("yours");
    successor.release();
    return { pid: successor.pid, former: process.pid, publishes: running(), drainS };
  }

  return async (say) => {
    if (state.word() !== "ready") throw new UpgradeFailed(`the service is ${state.word()}, not ready`);
    state.become("handing_over");
    try {
      const done = await handOver(say);
      state.become("leaving");
      return done;
    } catch (error) {
      const reason = `${reasonOf(error)}${await placeOfFault(error)}`;
      log.error({ reason }, "the upgrade did not happen: this process continues");
      deps.failed();
      await deps
        .stepBack()
        .catch((err: unknown) => log.error({ err }, "the name of this node could not be taken back"));
      if (state.word() === "handing_over") state.become("ready");
      throw new UpgradeFailed(reason, { cause: error });
    }
  };
}
