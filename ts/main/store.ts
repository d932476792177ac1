// The first phase of a start: the metrics port, which says what the start waits for, the store, and the other nodes on it.
import { clock as systemClock } from "../clock.ts";
import { watchDraining } from "../cluster/draining.ts";
import { joinCluster } from "../cluster/membership.ts";
import { readVersion } from "../config.ts";
import { createState } from "../handover/state.ts";
import { openElsewhere } from "../http/cluster/elsewhere.ts";
import { startingHealth } from "../http/health.ts";
import { listen } from "../listen/http-port.ts";
import { watchStore } from "../store/health.ts";
import { openStore } from "../store/open.ts";
import { openSecretBoxOf } from "../store/secret-box.ts";
import type { Beginning } from "./beginning.ts";

export type OpenedStore = Awaited<ReturnType<typeof openStoreAndCluster>>;

export async function openStoreAndCluster({ config, log, started, inherited, former, manager }: Beginning) {
  const isFile = config.databaseUrl === null;
  const { name } = config.node;
  const starting = startingHealth(name);
  const metricsAt = { ...config.metrics, name: "metrics.port" };
  // A successor gets the port from its predecessor, which answers until then. A port that is taken is reported later: a
  // store that is in use says more.
  const openMetrics = () => listen(starting.fetch, metricsAt, { socket: inherited.sockets.get("metrics") });
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
  const { db } = store;
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
  return {
    isFile,
    name,
    version,
    starting,
    openMetrics,
    earlyPort,
    store,
    key,
    cluster,
    there,
    isDraining,
    state,
    clock,
    storeHealth,
  };
}
