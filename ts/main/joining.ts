// The fourth phase of a start: the first organisation and its administrator, and this node among the others.
import { carryOutKeptEnds } from "../cluster/kept-ends.ts";
import { busiestOf } from "../media/workers.ts";
import { ensureFirstOrganisation, ensureFirstPerson } from "../organisation/organisations.ts";
import { type Addresses, addressesOf } from "../own-addresses.ts";
import { keepRecorded } from "../publish/bytes/pulled-bytes.ts";
import { endingFromText } from "../publish/ending/ending.ts";
import type { Beginning } from "./beginning.ts";
import type { StartedCore } from "./core.ts";
import type { OpenedPorts } from "./ports.ts";
import type { OpenedStore } from "./store.ts";

/** Where the first administrator's credentials are shown. */
export interface Terminal {
  readonly isTerminal: boolean;
  announceKey(key: string): void;
  announcePassword(password: string, dashboard: string): void;
}

export async function joinOthers(
  { config, log, started }: Beginning,
  terminal: Terminal,
  { store, clock, cluster }: OpenedStore,
  { service, media, running }: StartedCore,
  { nodePorts, http, metricsPort, clusterMetrics }: OpenedPorts,
): Promise<Addresses> {
  const { db } = store;
  const { publishing } = service;
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
      http: addresses.http,
      rtmp: addresses.rtmp,
      rtmps: addresses.rtmps,
      publishes: publishing.running().length,
      load: busiestOf(running().workerStatus()),
      full: service.full(),
    }),
    async alive() {
      await carryOutKeptEnds(db, cluster.epoch, ({ clientId, ending }) => {
        publishing.kick(({ intent }) => intent.clientId === clientId, endingFromText(ending));
      });
    },
    lost: publishing.abandon,
    async gone(share) {
      await publishing.takeOver("node_lost", share);
      clusterMetrics.countTakeover();
    },
  });
  started.push(keepRecorded(publishing.keepPulledBytes, log));
  return addresses;
}
