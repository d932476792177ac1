// Starts the service of a configuration, port by port, and stops it gracefully.
import type { Logger } from "pino";
import { createCapacity } from "./capacity/capacity.ts";
import { inspectCertificates, keepCertificate, readCertificate } from "./certificate.ts";
import { clock as systemClock } from "./clock.ts";
import { watchCluster } from "./cluster/cluster-metrics.ts";
import { watchDraining } from "./cluster/draining.ts";
import { takeKeptEnds } from "./cluster/kept-ends.ts";
import { joinCluster } from "./cluster/membership.ts";
import { formerName } from "./cluster/nodes.ts";
import { answersToRivals } from "./cluster/rivals.ts";
import { type Config, readVersion } from "./config.ts";
import { forbidCoreDumps } from "./core-dumps.ts";
import { MediaCoreMissing, StoreFailed, StoreUnavailable } from "./errors.ts";
import { type Control, controlOf } from "./handover/control.ts";
import { createHandover } from "./handover/handover.ts";
import { closeSockets, outlivesSuccessors, readInherited, type SocketName } from "./handover/inherited.ts";
import { createFormers } from "./handover/lifeline.ts";
import { keepSockets, rtmpOf, socketsOf } from "./handover/listening-sockets.ts";
import { openManager } from "./handover/manager.ts";
import { createNodePorts } from "./handover/node-ports.ts";
import { notesOfPorts, requirePorts } from "./handover/port-room.ts";
import { openPredecessor } from "./handover/predecessor.ts";
import { createState, notReady, watchState } from "./handover/state.ts";
import { openElsewhere } from "./http/cluster/elsewhere.ts";
import { answersAboutMetrics, createMetricsOf } from "./http/cluster/metrics-of-others.ts";
import { nodeApp } from "./http/cluster/node-app.ts";
import { answersToOthers } from "./http/cluster/others.ts";
import { healthApp, startingHealth } from "./http/health.ts";
import { inTime } from "./in-time.ts";
import { listen } from "./listen/http-port.ts";
import { createLog } from "./log.ts";
import { warnOfSmallBuffer } from "./media/ports.ts";
import { busiestOf } from "./media/workers.ts";
import type { Media } from "./media.ts";
import { watchNode } from "./metrics/node-metrics.ts";
import { ensureFirstOrganisation, ensureFirstPerson } from "./organisation/organisations.ts";
import { type Addresses, addressesOf } from "./own-addresses.ts";
import { keepRecorded } from "./publish/bytes/pulled-bytes.ts";
import { endingFromText } from "./publish/ending/ending.ts";
import { reasonOf } from "./reason.ts";
import { createService } from "./service.ts";
import { watchStore } from "./store/health.ts";
import { openStore } from "./store/open.ts";
import { keepPruned } from "./store/retention.ts";
import { openSecretBoxOf } from "./store/secret-box.ts";
import { keepTokenKeys } from "./token/keys.ts";

/** How often a drain logs how many publishes it waits for, ms. */
const DRAIN_TOLD_MS = 30_000;

/** How long a service that has been replaced by another process accepts new publishes on its existing connections,
 *  ms. */
const LAST_REQUESTS_MS = 5_000;

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

/** Starts everything. Rejects with `ConfigInvalid`, `PortTaken`, `StoreUnavailable` or `MediaCoreMissing`, and releases
 *  everything it had opened. `announceKey` and `announcePassword` show the first administrator's key and password, with
 *  the address of the dashboard, to the person who starts a new store; they are never logged. */
export async function serve(
  config: Config,
  terminal: {
    readonly isTerminal: boolean;
    announceKey(key: string): void;
    announcePassword(password: string, dashboard: string): void;
  },
  /** Program and arguments of this process. */
  command: readonly string[],
): Promise<RunningService> {
  const log = await createLog(config.log, terminal.isTerminal);
  forbidCoreDumps(log);
  /** Functions that stop what has been started, called in reverse order. */
  const started: (() => Promise<void>)[] = [];
  const inherited = readInherited();
  const former = inherited.isSuccessor ? openPredecessor() : null;
  const manager = openManager(inherited.manager, log);

  /** The configuration as last reloaded. */
  let current = config;
  const reloads: ((next: Config) => void)[] = [];

  async function start(): Promise<RunningService> {
    const isFile = config.databaseUrl === null;
    const { name } = config.node;
    const starting = startingHealth(name);
    const metricsAt = { ...config.metrics, name: "metrics.port" };
    const inheritedSocket = (socket: SocketName) => ({ socket: inherited.sockets.get(socket) });
    // A successor gets the port from its predecessor, which answers until then. A port that is taken is reported later: a
    // store that is in use says more.
    const openMetrics = () => listen(starting.fetch, metricsAt, inheritedSocket("metrics"));
    const earlyPort = former === null ? await openMetrics().catch(() => null) : null;
    if (earlyPort !== null) started.push(() => earlyPort.stop());
    const store = await openStore({
      ...config,
      access: former === null ? "service" : "successor",
      migrating(migration) {
        log.info({ migration }, "the tables of the store are migrated");
        starting.now(`migrating the tables of the store (${migration})`);
        void manager.tell(`STATUS=Migrating the tables of the store (${migration})`);
        former?.migrating();
      },
    });
    former?.migrated();
    starting.now("opening the media core and the ports");
    started.push(() => store.close());
    const { db, reads } = store;
    const key = (await openSecretBoxOf(db, config.dataDir)).keyFor("calls between nodes");
    const version = readVersion();
    const beside = former === null ? "first" : "successor";
    const cluster = await joinCluster({ db: store.lifeline, name, version, log, file: isFile ? beside : null });
    started.push(() => cluster.leave());
    const there = openElsewhere({ db, member: cluster, key, log });
    started.push(() => there.close());
    const isDraining = watchDraining(cluster, log);
    const state = createState(log, isDraining);
    const clock = isFile ? systemClock : cluster;
    const folder = isFile ? config.dataDir : null;
    const storeHealth = watchStore({ db, folder, log });
    started.push(async () => storeHealth.stop());
    let media: Media | null = null;
    const running = (): Media => {
      if (media === null) throw new Error("the media core is not started");
      return media;
    };
    const service = await createService(config, {
      ...{ db, reads, storeProblem: storeHealth.problem, clock, log, media: running, isDraining },
      isStopping: () => state.word() === "draining",
      openCapacity: createCapacity,
      ...{ member: cluster, cluster: there },
    });
    started.push(keepTokenKeys(service.tokenKeys, { clock, log }));
    started.push(keepPruned({ db, days: () => current.retention, clock, log }));
    started.push(() => service.stop());
    const { publishing, metrics, app } = service;
    await publishing.takeOver("gateway_restarted");
    const { openMedia, duplicate } = await loadMediaCore();
    const formers = createFormers(inherited.lifelines, duplicate);
    const opening = {
      isSuccessor: former !== null,
      accepts: former === null,
      rtmpSockets: rtmpOf(inherited.sockets),
    };
    media = await openMedia(config, publishing.handle, (err) => log.error({ err }, "media event failed"), opening);
    service.startMeasuring();
    closeSockets(inherited, ["rtmp", "rtmps"]);
    started.push(() => running().stop());
    metrics.watchMedia(media);
    watchNode(metrics.registry, {
      ...{ clock, storeProblem: storeHealth.problem, folder: config.dataDir, workerStatus: media.workerStatus },
      certificates: () =>
        inspectCertificates(config, clock.now()).map(({ files, own }) => ({
          section: files.section,
          endsAt: own === null ? null : Date.parse(own.validTo),
        })),
    });
    warnOfSmallBuffer(media.smallReceiveBuffer, log);
    if (config.rtmp.tls !== null) {
      const kept = keepCertificate(config.rtmp.tls, (renewed) => running().setCertificate(renewed), log);
      started.push(async () => kept.stop());
      reloads.push(({ rtmp }) => rtmp.tls && kept.reload(rtmp.tls));
    }

    const { registry } = metrics;
    const upgrades = watchState(registry, state);
    const clusterMetrics = watchCluster(registry, { name, version, epoch: service.epoch }, isFile ? null : cluster);
    const questions = {
      ...answersToOthers(service),
      ...answersAboutMetrics(registry),
      ...answersToRivals({
        silentMs: (clientId) => running().snapshot(clientId)?.silentMs ?? null,
        isEnding: publishing.isEnding,
        replace: (clientId) => running().end(clientId, "replaced", "Replaced by a new publish of the same name"),
      }),
    };
    const calls = nodeApp({ serve: app.fetch, key, clock, log, questions });
    const { accepting } = media;
    const isSuccessor = former !== null;
    const nodePorts = createNodePorts({ config, fetch: calls.fetch, accepting: () => accepting, isSuccessor });
    started.push(() => nodePorts.stop());
    if (!isFile || isSuccessor) await nodePorts.open();
    // With a file store, other processes of the service are on the same machine and reach this one there, whatever
    // address its RTMP port is bound to.
    // Other nodes send no PROXY header and use no TLS.
    const hasPlainPort = config.rtmp.port !== null && config.rtmp.trustedProxies.length === 0;
    if (isFile ? isSuccessor : !hasPlainPort) await nodePorts.openPulls();
    const { tls } = config.http;
    const certificate = tls && readCertificate(tls);
    const metricsOf = createMetricsOf({ nodes: cluster.nodes, channel: there.elsewhere.channel });
    const health = healthApp({
      ...{ registry, node: name, metricsOf },
      problem: () => notReady(state.word(), isSuccessor) ?? storeHealth.problem() ?? service.full(),
    });
    for (const note of notesOfPorts(config, media.mediaPorts, nodePorts.channel)) former?.note(note);
    await former?.prepared();
    starting.become(health);
    const metricsPort = earlyPort ?? (await openMetrics());
    if (earlyPort === null) started.push(() => metricsPort.stop());
    const httpOptions = { certificate, takesWebSockets: true, ...inheritedSocket("http"), duplicate };
    const http = await listen(app.fetch, { ...config.http, name: "http.port" }, httpOptions);
    started.push(() => http.stop());
    // Before the port waits for its running requests: event streams end only when they are stopped here.
    started.push(async () => service.events.stop());
    started.push(async () => service.previews.stop());
    if (tls !== null) {
      const kept = keepCertificate(tls, http.setCertificate, log);
      started.push(async () => kept.stop());
      reloads.push((next) => next.http.tls && kept.reload(next.http.tls));
    }

    // Last: a start that fails earlier has created no key, so that the one that succeeds creates and shows it.
    const first = await ensureFirstOrganisation(db, config.bootstrap.apiKey, clock.now());
    if (first.outcome === "bootstrap_key_unused") {
      log.warn("bootstrap.api_key is not a key of this store and grants no access");
    }
    if (first.outcome === "created" && first.key !== null) terminal.announceKey(first.key);
    const password = await ensureFirstPerson(db, config.bootstrap.adminPassword, clock.now());
    const addresses = addressesOf(config, media, http, metricsPort);
    if (password !== null) terminal.announcePassword(password, `${addresses.http}/dashboard/`);
    cluster.start({
      status: () => ({
        channel: nodePorts.channel,
        pullPort: nodePorts.pullPort,
        ...{ http: addresses.http, rtmp: addresses.rtmp, rtmps: addresses.rtmps },
        publishes: publishing.running().length,
        load: busiestOf(running().workerStatus()),
        full: service.full(),
      }),
      async alive() {
        for (const { clientId, ending } of await takeKeptEnds(db, cluster.epoch))
          publishing.kick(({ intent }) => intent.clientId === clientId, endingFromText(ending));
      },
      lost: publishing.abandon,
      async gone(share) {
        await publishing.takeOver("node_lost", share);
        clusterMetrics.countTakeover();
      },
    });
    started.push(keepRecorded(publishing.keepPulledBytes, log));
    accepting.startAccepting();
    await cluster.look();
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
      ...{ state, log, command, formers, manager, look: cluster.look },
      limits: () => current,
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
        await cluster.look();
      },
      async stepBack() {
        await store.rename(name);
        await cluster.rename(name);
        await cluster.look();
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
      reload(next) {
        current = next;
        log.level = next.log.level;
        for (const reload of reloads) reload(next);
      },
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
      const limitMs = current.drainS * 1_000;
      const untold = logDrain(() => publishing.running().length, current.drainS, log);
      const others = isFormer || !isMeant ? null : inTime(limitMs, formers.gone(), null);
      await Promise.race([Promise.all([publishing.drain(limitMs), others]), stoppedNow]);
      untold();
      if (isFormer) await succession.finish();
      await stopAll(started);
      state.become("stopped");
      succession.idle();
    }
  }

  try {
    return await start();
  } catch (error) {
    await stopAll(started);
    if (!(error instanceof StoreFailed)) throw error;
    const place = config.databaseUrl === null ? `the store in ${config.dataDir}` : "the database";
    throw new StoreUnavailable(`cannot use ${place}: ${error.message}`, { cause: error });
  }
}

/** Imported only by the service: commands that need no media work without it, and `doctor` reports when it is
 *  missing. */
async function loadMediaCore(): Promise<typeof import("./media/open.ts")> {
  try {
    return await import("./media/open.ts");
  } catch (cause) {
    throw new MediaCoreMissing(`the media core does not load: ${reasonOf(cause)}`, { cause });
  }
}

/** Logs how many publishes a drain waits for, at its start and periodically; the returned function stops it. */
function logDrain(running: () => number, limitS: number, log: Logger): () => void {
  const tell = () => log.info({ running: running(), limitS }, "draining: no new publish; running ones may end");
  tell();
  const timer = setInterval(tell, DRAIN_TOLD_MS);
  return () => {
    clearInterval(timer);
    log.info({ running: running() }, "drained: publishes that are still running end now");
  };
}

async function stopAll(started: (() => Promise<void>)[]): Promise<void> {
  for (const stop of started.splice(0).reverse()) await stop();
}
