// The second phase of a start: the service, and the media core below it.
import { createCapacity } from "../capacity/capacity.ts";
import { inspectCertificates, keepCertificate } from "../certificate.ts";
import { MediaCoreMissing } from "../errors.ts";
import { closeSockets } from "../handover/inherited.ts";
import { createFormers } from "../handover/lifeline.ts";
import { rtmpOf } from "../handover/listening-sockets.ts";
import { warnOfSmallBuffer } from "../media/ports.ts";
import type { Media } from "../media.ts";
import { watchNode } from "../metrics/node-metrics.ts";
import { reasonOf } from "../reason.ts";
import { createService } from "../service.ts";
import { keepPruned } from "../store/retention.ts";
import { keepTokenKeys } from "../token/keys.ts";
import type { Beginning } from "./beginning.ts";
import type { OpenedStore } from "./store.ts";

export type StartedCore = Awaited<ReturnType<typeof startCore>>;

export async function startCore(beginning: Beginning, opened: OpenedStore) {
  const { config, log, started, reloads, inherited, former } = beginning;
  const { store, clock, storeHealth, isDraining, state, cluster, there } = opened;
  const { db, reads } = store;
  let media: Media | null = null;
  const running = (): Media => {
    if (media === null) throw new Error("the media core is not started");
    return media;
  };
  const service = await createService(config, {
    db,
    reads,
    current: beginning.current,
    storeProblem: storeHealth.problem,
    clock,
    log,
    media: running,
    isDraining,
    isStopping: () => state.word() === "draining",
    openCapacity: createCapacity,
    member: cluster,
    cluster: there,
  });
  started.push(keepTokenKeys(service.tokenKeys, { clock, log }));
  started.push(keepPruned({ db, days: () => beginning.current().retention, clock, log }));
  started.push(() => service.stop());
  const { publishing, metrics } = service;
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
    clock,
    storeProblem: storeHealth.problem,
    folder: config.dataDir,
    workerStatus: media.workerStatus,
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
  return { service, media, running, formers, duplicate };
}

/** Imported only by the service: commands that need no media work without it, and `doctor` reports when it is
 *  missing. */
async function loadMediaCore(): Promise<typeof import("../media/open.ts")> {
  try {
    return await import("../media/open.ts");
  } catch (cause) {
    throw new MediaCoreMissing(`the media core does not load: ${reasonOf(cause)}`, { cause });
  }
}
