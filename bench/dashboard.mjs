// What open dashboards cost the gateway: `npm run bench -- dashboard [--readers 20] [--streams 5000] [--live
// 200] [--seconds 30]`. The gateway is a separate process, with a real store, sign-in, HTTP and port; its
// media core is a stand-in whose publishes change every second: 200 real ones would cost more than what is
// measured. It is measured without readers, then with all readers on the list of running publishes, then with
// all on a stream's page.
import { parseArgs } from "node:util";
import { dashboard } from "./_dashboard.mjs";

export async function bench(words) {
  const { values } = parseArgs({
    args: words,
    options: {
      readers: { type: "string", default: "20" },
      streams: { type: "string", default: "5000" },
      live: { type: "string", default: "200" },
      seconds: { type: "string", default: "30" },
    },
  });
  await dashboard({
    readers: Number(values.readers),
    streams: Number(values.streams),
    live: Number(values.live),
    seconds: Number(values.seconds),
  });
}
