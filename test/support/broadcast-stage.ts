// The complete environment of /broadcast, as real programs: a customer who decides, the service, Chromium with fake
// cameras, and a player.
import { type BroadcastPage, type Pages, startPages } from "./broadcast-page.ts";
import { run } from "./child.ts";
import { type Customer, startCustomer } from "./customer.ts";
import { type Headgate, startHeadgate } from "./headgate.ts";

export interface BroadcastStage {
  readonly customer: Customer;
  readonly headgate: Headgate;
  readonly pages: Pages;
  /** Opens a path of the service, by default in Chromium with two cameras whose user allows everything. */
  open(path: string, options?: Parameters<Pages["open"]>[1], browser?: Pages): Promise<BroadcastPage>;
  newToken(streamName: string): Promise<string>;
  /** A page for a stream of its own, with camera and microphone on. */
  ready(): Promise<{ readonly name: string; readonly broadcast: BroadcastPage }>;
  /** Codec and size of a stream's video as a player sees them. */
  playedVideo(name: string): Promise<string>;
  /** Closes every page, and lets the customer allow everything again. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** What a stage without a browser is given instead of `startPages`. */
export const withoutPages = async (): Promise<Pages> => ({
  open: () => Promise.reject(new Error("this stage has no browser")),
  close: async () => {},
});

/** `startBrowser`: where the pages run. */
export async function openBroadcastStage(
  env: Readonly<Record<string, string>> = {},
  startBrowser: () => Promise<Pages> = startPages,
): Promise<BroadcastStage> {
  const customer = await startCustomer();
  const [headgate, pages] = await Promise.all([
    startHeadgate({ customer, env: { HEADGATE_LOG_LEVEL: "debug", ...env } }),
    startBrowser(),
  ]);
  const opened: BroadcastPage[] = [];
  customer.answer({ status: 200 });

  const open: BroadcastStage["open"] = async (path, options = {}, browser = pages) => {
    const page = await browser.open(`${headgate.http}${path}`, options);
    opened.push(page);
    return page;
  };
  const newToken = async (streamname: string) => {
    const { data } = await headgate.call("POST", "/webcaster", { streamname, ingesturl: headgate.rtmp });
    return (data as { token: string }).token;
  };

  return {
    customer,
    headgate,
    pages,
    open,
    newToken,
    async ready() {
      const name = await headgate.newStream();
      const broadcast = await open(`/broadcast#token=${await newToken(name)}`);
      await broadcast.press();
      await broadcast.reaches("ready");
      return { name, broadcast };
    },
    async playedVideo(name) {
      const entries = "stream=codec_name,width,height";
      const probe = ["-v", "error", "-select_streams", "v", "-show_entries", entries, "-of", "csv=p=0"];
      return (await run("ffprobe", [...probe, `${headgate.rtmp}/${name}`])).stdout().trim();
    },
    async reset() {
      for (const { page } of opened.splice(0)) await page.context().close();
      customer.answer({ status: 200 });
    },
    async close() {
      await pages.close();
      await headgate.stop();
      await customer.close();
    },
  };
}
