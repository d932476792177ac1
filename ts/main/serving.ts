// The last phase of a start: this process accepts publishes, and hands over to a new one or stops.
import type { Logger } from "pino";
import { formerName } from "../cluster/nodes.ts";
import type { Config } from "../config.ts";
import { type Control, controlOf } from "../handover/control.ts";
import { createHandover } from "../handover/handover.ts";
import { outlivesSuccessors } from "../handover/inherited.ts";
import { keepSockets, socketsOf } from "../handover/listening-sockets.ts";
import { requirePorts } from "../handover/port-room.ts";
import { inTime } from "../in-time.ts";
import type { Addresses } from "../own-addresses.ts";
import { type Beginning, stopAll } from "./beginning.ts";
import type { StartedCore } from "./core.ts";
import type { OpenedPorts } from "./ports.ts";
import type { RunningService } from "./running-service.ts";
import type { OpenedStore } from "./store.ts";

/** How often a drain logs how many publishes it waits for, ms. */
const DRAIN_LOGGED_EVERY_MS = 30_000;

/** How long a service that has been replaced by another process accepts new publishes on its existing connections,
 *  ms. */
const LAST_REQUESTS_MS = 5_000;

export async function startServing(
  beginning: Beginning,
  opened: OpenedStore,
  core: StartedCore,
  ports: OpenedPorts,
  { addresses, reload }: { readonly addresses: Addresses; readonly reload: (next: Config) => void },
): Promise<RunningService> {
  const { config, log, started, inherited, former, manager, command } = beginning;
  const { name, store, cluster, state } = opened;
  const { formers, duplicate } = core;
  const { accepting } = core.media;
  const { publishing } = core.service;
  const { nodePorts, http, metricsPort, upgrades } = ports;
  const isSuccessor = former !== null;
  accepting.startAccepting();
  await cluster.readNodes();
  await former?.listening();
  formers.serve();
  let control: Control | null = null;
  let handOverIsDone = (): void => {};
  const handedOver = new Promise<void>((resolve) => {
    handOverIsDone = resolve;
  });
  let stopNow = (): void => {};
  const stoppedNow = new Promise<void>((resolve) => {
    stopNow = resolve;
  });
  const { handOver, succession } = createHandover({
    state,
    log,
    command,
    formers,
    manager,
    readNodes: cluster.readNodes,
    limits: beginning.current,
    failed: upgrades.failed,
    running: () => publishing.running().length,
    keepSockets: (sockets) => keepSockets(sockets, duplicate),
    stopNow,
    sockets: () => socketsOf({ http: http.socket(), metrics: metricsPort.socket(), ...accepting.rtmpSockets() }),
    async stepAside() {
      await requirePorts(config, cluster.nodes(), nodePorts.pullPort === null);
      await nodePorts.open();
      await nodePorts.openPulls();
      const other = formerName(name, cluster.epoch);
      await store.rename(other);
      await cluster.rename(other);
      await cluster.readNodes();
    },
    async stepBack() {
      await store.rename(name);
      await cluster.rename(name);
      await cluster.readNodes();
      // Those that the new process accepted before it failed.
      await publishing.takeOver("node_lost");
      control ??= await controlOf(config.dataDir, handOver, log);
    },
    async leave() {
      http.stopListening();
      metricsPort.stopListening();
      accepting.stopAccepting();
      formers.leave();
      await control?.close();
      setTimeout(handOverIsDone, LAST_REQUESTS_MS);
    },
  });
  control = await controlOf(config.dataDir, handOver, log);
  started.push(async () => control?.close());
  state.become("ready");
  // Also the main process, should the former one have died before it could report that.
  const main = isSuccessor ? `MAINPID=${process.pid}\n` : "";
  await manager.tell(`${main}READY=1\nSTATUS=Ready: ${addresses.http}, ${addresses.rtmp ?? addresses.rtmps}`);
  let stopped: Promise<void> | null = null;
  return {
    stopNow() {
      stopNow();
      if (state.word() === "leaving") succession.cancel();
      else formers.tell("now");
    },
    addresses,
    handedOver,
    isVacant: succession.isVacant,
    mayExit: async () => await (outlivesSuccessors(inherited) ? succession.over() : undefined),
    passOnStop: () => outlivesSuccessors(inherited) && succession.passOnStop(),
    stopPassedOn: formers.stopPassedOn,
    log,
    reload,
    failed: store.failed.then((error) => Promise.reject(error)),
    stop(isMeant) {
      stopped ??= stop(isMeant);
      return stopped;
    },
  };

  async function stop(isMeant: boolean): Promise<void> {
    const isFormer = state.word() === "leaving";
    if (!isFormer) state.become("draining");
    if (!isFormer && isMeant) {
      await manager.tell("STOPPING=1");
      formers.tell("stopping");
    }
    cluster.drain();
    http.drain();
    const limitMs = beginning.current().drainS * 1_000;
    const stopLogging = logDrain(() => publishing.running().length, beginning.current().drainS, log);
    const others = isFormer || !isMeant ? null : inTime(limitMs, formers.gone(), null);
    await Promise.race([Promise.all([publishing.drain(limitMs), others]), stoppedNow]);
    stopLogging();
    if (isFormer) await succession.finish();
    await stopAll(started);
    state.become("stopped");
    succession.idle();
  }
}

/** Logs how many publishes a drain waits for, at its start and periodically; the returned function stops it. */
function logDrain(running: () => number, limitS: number, log: Logger): () => void {
  const tell = () => log.info({ running: running(), limitS }, "draining: no new publish; running ones may end");
  tell();
  const timer = setInterval(tell, DRAIN_LOGGED_EVERY_MS);
  return () => {
    clearInterval(timer);
    log.info({ running: running() }, "drained: publishes that are still running end now");
  };
}
