// The complete environment of a page that broadcasts, as real programs: customer, service, upstream, Chromium, HTTPS
// between them, and a site of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BroadcastNetwork, startBroadcastNetwork } from "./broadcast-network.ts";
import { until } from "./child.ts";
import { type Chromium, startChromium } from "./chromium.ts";
import { type CustomerRequest, startCustomer } from "./customer.ts";
import { freePort } from "./free-port.ts";
import { type Headgate, startHeadgate } from "./headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "./nginx-rtmp.ts";
import { trustFile } from "./trust-file.ts";
import { serveWebcasterSite, type WebcasterPage, type WebcasterSite } from "./webcaster-page.ts";

/** Small video, for tests that are about something else. */
export const SMALL = {
  inputCfg: {
    mediaStreamCfg: { resolution: [320, 180], maxFramerate: 10 },
    broadcastCfg: { maxVideoBitrateBps: 150_000 },
  },
};

export interface WebcasterStage {
  readonly upstream: NginxRtmp;
  readonly chromium: Chromium;
  /** HTTPS in front of the service. */
  readonly network: BroadcastNetwork;
  readonly site: WebcasterSite;
  /** Names whose publish the customer denies. */
  readonly denied: Set<string>;
  headgate(): Headgate;
  /** Kills the service and restarts it on the same data; resolves when it is ready. */
  restart(): Promise<void>;
  /** The customer's requests for a stream. */
  calls(call: string, name: string): readonly CustomerRequest[];
  doneOf(name: string): Promise<CustomerRequest>;
  recordingOf(name: string): Promise<string>;
  /** Ends a publish as an operator does. */
  kick(name: string): Promise<void>;
  /** A live page with small video. */
  liveOn(through: BroadcastNetwork, config?: object): Promise<{ readonly name: string; readonly page: WebcasterPage }>;
  close(): Promise<void>;
}

export async function openWebcasterStage(): Promise<WebcasterStage> {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-webcaster-"));
  const denied = new Set<string>();
  const customer = await startCustomer();
  customer.answer(({ body }) => {
    const isDenied = [...denied].some((name) => body.includes(`name=${name}&`));
    const why = { body: "Your subscription is over\n", headers: { "content-type": "text/plain" } };
    return isDenied ? { status: 403, ...why } : { status: 200 };
  });
  const upstream = await startNginxRtmp();
  const env = {
    HEADGATE_DATA_DIR: dataDir,
    // The same port after a restart, because pages refer to it.
    HEADGATE_RTMP_PORT: String(await freePort()),
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_WEBHOOK_CA: trustFile(customer.ca),
  };
  let headgate = await startHeadgate({ customer, env });
  const chromium = await startChromium(["--ignore-certificate-errors"]);
  const network = await startBroadcastNetwork(headgate.http);
  const site = await serveWebcasterSite(chromium);
  const calls = (call: string, name: string) =>
    customer.calls(call).filter(({ body }) => body.includes(`name=${name}&`));

  return {
    upstream,
    chromium,
    network,
    site,
    denied,
    headgate: () => headgate,
    async restart() {
      headgate.process.kill("SIGKILL");
      await headgate.process.exit;
      // Without the customer: its webhook is already in the store.
      headgate = await startHeadgate({ env });
      network.leadTo(headgate.http);
    },
    calls,
    doneOf: (name) => until("publish_done", () => calls("publish_done", name)[0], 20_000),
    recordingOf: (name) => until("the recording", () => upstream.recording(name)),
    async kick(name) {
      const sessions = (await headgate.call("GET", "/session")) as unknown as {
        client_id: number;
        streamname: string;
      }[];
      const { client_id } = sessions.find(({ streamname }) => streamname === name) ?? {};
      await headgate.call("POST", `/session/${client_id}/kick`);
    },
    async liveOn(through, config = {}) {
      const name = await headgate.newStream();
      const page = await site.open(through.https, { streamName: name, ingestUrl: headgate.rtmp, ...SMALL, ...config });
      await page.run("webcaster.setup()");
      await page.run("webcaster.startBroadcast()");
      return { name, page };
    },
    async close() {
      await chromium.close();
      await headgate.stop();
      await Promise.all([network.close(), site.close(), upstream.stop(), customer.close()]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
