// Metrics of live publishes as an operator's monitoring sees them, with real programs.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { inWholeRun } from "../support/whole-run.ts";

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ customer, env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
}, 60_000);
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

async function scraped(service: Headgate = headgate): Promise<string> {
  const { metrics } = JSON.parse(service.process.stdout()) as { metrics: string };
  return await (await fetch(`${metrics}/metrics`)).text();
}

test("publishes, players, upstreams and bytes are counted, and the bytes are those of publish_done", async () => {
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120 });
  await until("it is live", async () => (await scraped()).includes('headgate_publishes{protocol="rtmp"} 1'), 60_000);
  const player = packetsOf(`${headgate.rtmp}/${name}`);
  const running = [/^headgate_players 1$/m, /^headgate_upstreams\{state="sending"\} 1$/m];
  await until("a player and an upstream", async () => {
    const text = await scraped();
    return running.every((line) => line.test(text));
  });
  const [session] = (await headgate.call("GET", "/session")) as unknown as { client_id: number }[];
  const shown = await headgate.call("GET", `/session/${session?.client_id}`);
  expect(shown.players).toMatchObject([{ address: "127.0.0.1", dropped_frames: 0 }]);
  encoder.kill("SIGKILL");
  await player;
  const { body } = await customer.received("publish_done");
  const done = new URLSearchParams(body);
  const text = await scraped();
  expect(text).toContain('headgate_publish_started_total{protocol="rtmp"} 1');
  expect(text).toMatch(/^headgate_publish_ended_total\{reason="\w+"\} 1$/m);
  expect(text).toContain('headgate_publishes{protocol="rtmp"} 0');
  expect(text).toContain(`headgate_media_bytes_total{direction="in"} ${done.get("bytes_in")}`);
  expect(text).toContain(`headgate_media_bytes_total{direction="out"} ${done.get("bytes_out")}`);
}, 120_000);

inWholeRun(
  "connections past the configured limit, kernel drops and failed transcoders are counted",
  async () => {
    const limited = await startHeadgate({ env: { HEADGATE_LIMITS_RTMP_CONNECTIONS_PER_ADDRESS: "1" } });
    const sockets = [];
    try {
      for (let each = 0; each < 3; each += 1) {
        const socket = connect(Number(new URL(limited.rtmp).port), "127.0.0.1").on("error", () => {});
        sockets.push(socket);
        await once(socket, "connect");
      }
      await until("two refusals", async () =>
        (await scraped(limited)).includes("\nheadgate_rtmp_connection_refused_total 2\n"),
      );
      const text = await scraped(limited);
      expect(text).toContain(
        "\n# TYPE headgate_media_kernel_drops_total counter\nheadgate_media_kernel_drops_total 0\n",
      );
      expect(text).toContain("\nheadgate_transcoder_failed_total 0\n");
    } finally {
      for (const socket of sockets) socket.destroy();
      await limited.stop();
    }
  },
  60_000,
);
