// One node of `_cluster-oracle.mjs`, in its own process, which can be killed and paused: a complete gateway
// with a media core that only counts. Publishes on request, and ends each publish after a while.
import { openPublishing } from "./_publishing.mjs";
import { clock } from "./_webhook.mjs";

/** Longest duration of a publish, ms. */
const LASTS_MS = 1_500;

const [, , name, dataDir, databaseUrl, ca] = process.argv;
const gateway = await openPublishing({ nodeName: name, ca }, dataDir, clock, databaseUrl);
const { cluster, publishing } = gateway;
await publishing.takeOver("gateway_restarted");
cluster.start({
  status: () => ({ channel: null, http: null, rtmp: null, publishes: publishing.running().length, load: 0 }),
  async alive() {},
  lost() {
    for (const { clientId } of publishing.running()) gateway.end(clientId);
  },
  gone: (share) => publishing.takeOver("node_lost", share),
});
process.on("message", async ({ key, stream }) => {
  const { allowed, clientId = null } = await gateway.request(stream);
  process.send({ key, allowed, clientId });
  if (!allowed) return;
  setTimeout(() => gateway.end(clientId, { bytesIn: 1_000, bytesOut: 0 }), Math.random() * LASTS_MS);
});
process.send({ ready: true });
