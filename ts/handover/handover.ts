// Hands the service over to a new process, which starts beside this one, listens on the same sockets, and accepts all
// new connections from then on. Until it listens nothing changes for anybody, and any failure is rolled back; afterwards
// this process replaces it should it die (succession.ts).
import type { Logger } from "pino";
import { UpgradeFailed } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { locationOfFault } from "./fault-location.ts";
import type { FormerProcesses } from "./lifeline.ts";
import type { KeptSockets, NamedSockets } from "./listening-sockets.ts";
import type { ServiceManager } from "./manager.ts";
import type { ServiceState } from "./state.ts";
import { createSuccession, type Succession } from "./succession.ts";
import { type Successor, startSuccessor } from "./successor.ts";

export interface HandoverDeps {
  readonly state: ServiceState;
  readonly log: Logger;
  /** Program and arguments of the new process. */
  readonly command: readonly string[];
  /** The sockets that it inherits, and duplicates of them, which stay open when this process stops listening. */
  readonly sockets: () => NamedSockets;
  readonly keepSockets: (sockets: NamedSockets) => KeptSockets;
  readonly formers: Pick<FormerProcesses, "descriptors">;
  readonly manager: ServiceManager;
  /** Makes this process reachable for others beside the new one, and rolls that back. */
  readonly stepAside: () => Promise<void>;
  readonly stepBack: () => Promise<void>;
  /** Reads which nodes are present. */
  readonly readNodes: () => Promise<void>;
  /** Called when the new process listens and this one stops listening. */
  readonly leave: () => Promise<void>;
  /** A new process failed. */
  readonly failed: () => void;
  /** The publishes of this process are to end. */
  readonly stopNow: () => void;
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

export function createHandover(deps: HandoverDeps): { readonly handOver: Handover; readonly succession: Succession } {
  const { state, log, running } = deps;
  let kept: KeptSockets | null = null;
  const succession = createSuccession({
    log,
    manager: deps.manager,
    failed: deps.failed,
    stopNow: deps.stopNow,
    running,
    introduce: (cancelled) => introduce(() => {}, cancelled),
    closeSockets: () => kept?.close(),
  });

  /** Starts a process and lets it listen. Rejects with `UpgradeFailed`: it has then been ended. */
  async function introduce(say: (line: string) => void, cancelled: AbortSignal): Promise<Successor> {
    const { upgradeS } = deps.limits();
    const sockets = kept?.sockets ?? deps.sockets();
    const lifelines = deps.formers.descriptors();
    const { command } = deps;
    const successor = startSuccessor({ command, sockets, lifelines, heard: succession.heard, said: say });
    const ended = () => void successor.kill();
    cancelled.addEventListener("abort", ended);
    log.info({ successor: successor.pid }, "the new process starts");
    say(`The new process is ${successor.pid}.`);
    try {
      await successor.heard("prepared", upgradeS * 1_000);
      const { word } = state;
      if (cancelled.aborted || (word() !== "handing_over" && word() !== "leaving")) {
        throw new UpgradeFailed("the service was told to stop meanwhile");
      }
      say("It has started, and is beginning to listen.");
      successor.tell("listen");
      await successor.heard("listening", upgradeS * 1_000);
      await deps
        .readNodes()
        .catch((err: unknown) => log.warn({ err }, "the new process could not be looked up in the store"));
      kept ??= deps.keepSockets(sockets);
      if (successor.end() !== null) throw new UpgradeFailed(`the new process ${successor.end()}`);
    } catch (error) {
      await successor.kill();
      throw error;
    } finally {
      cancelled.removeEventListener("abort", ended);
    }
    return successor;
  }

  async function handOver(say: (line: string) => void): Promise<HandedOver> {
    await deps.stepAside();
    const successor = await introduce(say, new AbortController().signal);
    // From here on the handover is final: the new process listens, and continues even if this one dies.
    await deps.leave();
    await deps.manager.tell(`MAINPID=${successor.pid}`);
    successor.tell("yours");
    successor.release();
    succession.follow(successor);
    return { pid: successor.pid, former: process.pid, publishes: running(), drainS: deps.limits().drainS };
  }

  async function handOverOrStay(say: (line: string) => void): Promise<HandedOver> {
    if (state.word() !== "ready") throw new UpgradeFailed(`the service is ${state.word()}, not ready`);
    state.become("handing_over");
    try {
      const done = await handOver(say);
      state.become("leaving");
      return done;
    } catch (error) {
      const reason = `${reasonOf(error)}${await locationOfFault(error)}`;
      log.error({ reason }, "the upgrade did not happen: this process continues");
      deps.failed();
      kept?.close();
      kept = null;
      await deps
        .stepBack()
        .catch((err: unknown) => log.error({ err }, "the name of this node could not be taken back"));
      if (state.word() === "handing_over") state.become("ready");
      throw new UpgradeFailed(reason, { cause: error });
    }
  }

  return { handOver: handOverOrStay, succession };
}
