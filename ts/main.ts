// Starts the service of a configuration, port by port, and stops it gracefully.
import type { Logger } from "pino";
import { inspectCertificates, keepCertificate, readCertificate } from "./certificate.ts";
import { clock as systemClock } from "./clock.ts";
import { watchCluster } from "./cluster/cluster-metrics.ts";
import { watchDraining } from "./cluster/draining.ts";
import { takeKeptEnds } from "./cluster/kept-ends.ts";
import { joinCluster } from "./cluster/membership.ts";
import { answersToRivals } from "./cluster/rivals.ts";
import { type Config, readVersion } from "./config.ts";
import { forbidCoreDumps } from "./core-dumps.ts";
import { MediaCoreMissing, StoreFailed, StoreUnavailable } from "./errors.ts";
import { openElsewhere } from "./http/cluster/elsewhere.ts";
import { nodeApp } from "./http/cluster/node-app.ts";
import { answersToOthers } from "./http/cluster/others.ts";
import { healthApp } from "./http/health.ts";
import { listen } from "./listen/http-port.ts";
import { createLog } from "./log.ts";
import { warnOfSmallBuffer } from "./media/ports.ts";
import type { Media } from "./media.ts";
import { watchNode } from "./metrics/node-metrics.ts";
import { ensureFirstOrganisation, ensureFirstPerson } from "./organisation/organisations.ts";
import { type Addresses, addressesOf, nodeAddressOf } from "./own-addresses.ts";
import { reasonOf } from "./reason.ts";
import { createService } from "./service.ts";
import { watchStore } from "./store/health.ts";
import { openStore } from "./store/open.ts";
import { keepPruned } from "./store/retention.ts";
import { openSecretBox } from "./store/secret-box.ts";
import { keepTokenKeys } from "./token/keys.ts";

/** What a broadcaster is told whose end was wanted while its node was away. */
const KEPT_END = "Publish was ended by the operator";
/** How often a drain says for whom it waits, ms. */
const DRAIN_TOLD_MS = 30_000;

export interface RunningService {
  readonly addresses: Addresses;
  /** Not ready, no new publish, running ones until `drain_s`; then everything ends and every done event is sent or
   *  kept for the next start. */
  stop(): Promise<void>;
  /** Cuts the wait of `stop` short: running publishes end now. */
  stopNow(): void;
  /** Rejects when the store dies while the service runs; nothing works after that. */
  readonly failed: Promise<never>;
}

/** Starts everything. Rejects with `ConfigInvalid`, `PortTaken`, `StoreUnavailable` or `MediaCoreMissing`, and leaves nothing behind.
 *  `announceKey` and `announcePassword` show the first administrator's key and password, with the address of the
 *  dashboard, to the person who starts a new store; they are never logged. */
export async function serve(
  config: Config,
  terminal: {
    readonly isTerminal: boolean;
    announceKey(key: string): void;
    announcePassword(password: string, dashboard: string): void;
  },
): Promise<RunningService> {
  const log = createLog(config.log, terminal.isTerminal);
  forbidCoreDumps(log);
  /** What has been started, to be stopped in the reverse order. */
  const started: (() => Promise<void>)[] = [];
  let ready = false;

  async function start(): Promise<RunningService> {
    const store = await openStore(config);
    started.push(() => store.close());
    const { db } = store;
    const version = readVersion();
    const cluster =
      config.databaseUrl === null ? null : await joinCluster({ db, name: config.node.name, version, log });
    started.push(async () => cluster?.leave());
    const key = cluster && openSecretBox(config.dataDir).keyFor("calls between nodes");
    const there = cluster && key && openElsewhere({ db, member: cluster, key, log });
    started.push(async () => there?.close());
    const isDraining = cluster === null ? () => false : watchDraining(cluster, log);
    const clock = cluster ?? systemClock;
    const folder = config.databaseUrl === null ? config.dataDir : null;
    const storeHealth = watchStore({ db, folder, log });
    started.push(async () => storeHealth.stop());
    let media: Media | null = null;
    const running = (): Media => {
      if (media === null) throw new Error("the media core is not started");
      return media;
    };
    const service = await createService(config, {
      ...{ db, storeProblem: storeHealth.problem, clock, log, media: running, isDraining },
      ...(cluster && { member: cluster, cluster: there }),
    });
    started.push(keepTokenKeys(service.tokenKeys, { clock, log }));
    started.push(keepPruned({ db, days: config.retention, clock, log }));
    started.push(() => service.stop());
    const { publishing, metrics, app } = service;
    await publishing.takeOver("gateway_restarted");
    const { openMedia } = await loadMediaCore();
    media = await openMedia(config, publishing.handle, (err) => log.error({ err }, "media event failed"));
    started.push(() => running().stop());
    metrics.watchMedia(media);
    watchNode(metrics.registry, {
      ...{ clock, storeProblem: storeHealth.problem, folder: config.dataDir, workerLoads: media.workerLoads },
      certificates: () =>
        inspectCertificates(config, clock.now()).map(({ files, own }) => ({
          section: files.section,
          endsAt: own === null ? null : Date.parse(own.validTo),
        })),
    });
    warnOfSmallBuffer(media.smallReceiveBuffer, log);
    if (config.rtmp.tls !== null) {
      const unwatch = keepCertificate(config.rtmp.tls, (renewed) => running().setCertificate(renewed), log);
      started.push(async () => unwatch());
    }

    const problem = () => {
      if (!ready) return "starting or stopping";
      return isDraining() ? "draining" : storeHealth.problem();
    };
    const { name } = config.node;
    const clusterMetrics = watchCluster(metrics.registry, { name, version, epoch: service.epoch }, cluster);
    const health = healthApp({ registry: metrics.registry, node: name, problem });
    const metricsPort = await listen(health.fetch, { ...config.metrics, name: "metrics.port" });
    started.push(() => metricsPort.stop());
    const questions = {
      ...answersToOthers(service),
      ...answersToRivals({
        silentMs: (clientId) => running().snapshot(clientId)?.silentMs ?? null,
        isEnding: publishing.isEnding,
        replace: (clientId) => running().end(clientId, "replaced", "Replaced by a new publish of the same name"),
      }),
    };
    const calls = key && nodeApp({ serve: app.fetch, key, clock, log, questions });
    const nodePort = calls && (await listen(calls.fetch, { ...config.node, name: "node.port" }));
    started.push(async () => nodePort?.stop());
    const { tls } = config.http;
    const certificate = tls && readCertificate(tls);
    const http = await listen(app.fetch, { ...config.http, name: "http.port" }, { certificate, takesWebSockets: true });
    started.push(() => http.stop());
    // Before the port waits for its running requests: these end by themselves only with their readers.
    started.push(async () => service.events.stop());
    started.push(async () => service.previews.stop());
    if (tls !== null) {
      const unwatch = keepCertificate(tls, http.setCertificate, log);
      started.push(async () => unwatch());
    }

    // Last: a start that fails before has made no key, so that the one that succeeds makes and shows it.
    const first = await ensureFirstOrganisation(db, config.bootstrap.apiKey, clock.now());
    if (first.outcome === "bootstrap_key_unused") {
      log.warn("bootstrap.api_key is none of this store's keys and opens nothing");
    }
    if (first.outcome === "created" && first.key !== null) terminal.announceKey(first.key);
    const password = await ensureFirstPerson(db, config.bootstrap.adminPassword, clock.now());
    const addresses = addressesOf(config, media, http, metricsPort);
    if (password !== null) terminal.announcePassword(password, `${addresses.http}/dashboard/`);
    cluster?.start({
      status: () => ({
        channel: nodePort && nodeAddressOf(config, nodePort),
        ...{ http: addresses.http, rtmp: addresses.rtmp, rtmps: addresses.rtmps },
        publishes: publishing.running().length,
        load: Math.max(0, ...running().workerLoads()),
      }),
      async alive() {
        await publishing.keepPulledBytes();
        for (const clientId of await takeKeptEnds(db, cluster.epoch))
          publishing.kick(({ intent }) => intent.clientId === clientId, KEPT_END);
      },
      lost: publishing.abandon,
      async gone() {
        await publishing.takeOver("node_lost");
        clusterMetrics.countTakeover();
      },
    });
    ready = true;
    log.info("ready");
    let stopNow = (): void => {};
    const stoppedNow = new Promise<void>((resolve) => {
      stopNow = resolve;
    });
    return {
      stopNow,
      addresses,
      failed: store.failed.then((error) => Promise.reject(error)),
      async stop() {
        ready = false;
        cluster?.drain();
        http.drain();
        const untold = tellDrain(() => publishing.running().length, config.drainS, log);
        await Promise.race([publishing.drain(config.drainS * 1_000), stoppedNow]);
        untold();
        await stopAll(started);
        log.info("stopped");
      },
    };
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

/** Loaded for the service alone: every command that needs no media works without it, and `doctor` says why. */
async function loadMediaCore(): Promise<typeof import("./media/open.ts")> {
  try {
    return await import("./media/open.ts");
  } catch (cause) {
    throw new MediaCoreMissing(`the media core does not load: ${reasonOf(cause)}`, { cause });
  }
}

/** Logs for whom a drain waits, at its start and now and then; what comes back ends that. */
function tellDrain(running: () => number, limitS: number, log: Logger): () => void {
  const tell = () => log.info({ running: running(), limitS }, "draining: no new publish; running ones may end");
  tell();
  const timer = setInterval(tell, DRAIN_TOLD_MS);
  return () => {
    clearInterval(timer);
    log.info({ running: running() }, "drained: what still runs ends now");
  };
}

async function stopAll(started: (() => Promise<void>)[]): Promise<void> {
  for (const stop of started.splice(0).reverse()) await stop();
}
