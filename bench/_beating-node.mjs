// One node of `_deaths.mjs`, in its own process, which can be killed: a complete gateway with a media core that reports
// growing pulls. Reports each heartbeat and, when asked, its CPU time.
import { keepRecorded } from "../dist/publish/bytes/pulled-bytes.js";
import { openPublishing } from "./_publishing.mjs";
import { clock } from "./_webhook.mjs";

const [, , name, dataDir, databaseUrl, ca, pulled] = process.argv;
const [first, count] = JSON.parse(pulled);
const pulls = () =>
  Array.from({ length: count }, (_, at) => ({ clientId: first + at, bytesOut: Math.round(performance.now()) }));
const gateway = await openPublishing({ nodeName: name, ca, pulls }, dataDir, clock, databaseUrl);
const { cluster, publishing, log } = gateway;
await publishing.takeOver("gateway_restarted");
let askedAt = performance.now();
cluster.start({
  status() {
    askedAt = performance.now();
    return { channel: null, http: null, rtmp: null, publishes: 0, load: 0 };
  },
  async alive() {
    process.send({ beat: { tookMs: performance.now() - askedAt } });
  },
  lost: () => process.send({ lost: true }),
  gone: (share) => publishing.takeOver("node_lost", share),
});
keepRecorded(publishing.keepPulledBytes, log);
// Asked for its CPU time so far, ms.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpuMs: (user + system) / 1_000 });
});
process.send({ epoch: cluster.epoch });
