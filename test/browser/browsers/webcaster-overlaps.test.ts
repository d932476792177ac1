// Calls of the browser client that overlap, in Chromium against the real service: whatever a page calls while another
// call waits, no broadcast and no device is left running that it cannot stop.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import type { WebcasterPage } from "../../support/webcaster-page.ts";
import { openWebcasterStage, type WebcasterStage } from "../../support/webcaster-stage.ts";

let stage: WebcasterStage;
beforeAll(async () => {
  stage = await openWebcasterStage();
}, 120_000);
afterAll(() => stage?.close());

/** A live page that records every track it opens in `opened`, and holds what `holding` describes until `release()`. */
async function livePage(holding: "devices" | "end"): Promise<{ readonly name: string; readonly page: WebcasterPage }> {
  const live = await stage.liveOn(stage.network);
  await live.page.run(`void (() => {
    const held = new Promise((resolve) => { window.release = () => resolve(); });
    const { mediaDevices } = navigator;
    const open = mediaDevices.getUserMedia.bind(mediaDevices);
    const request = window.fetch.bind(window);
    window.opened = webcaster.getMediaStream().getTracks();
    mediaDevices.getUserMedia = async (constraints) => {
      if (${holding === "devices"}) await held;
      const media = await open(constraints);
      opened.push(...media.getTracks());
      return media;
    };
    window.fetch = async (url, options) => {
      if (${holding === "end"} && options?.method === "DELETE") await held;
      return await request(url, options);
    };
  })()`);
  return live;
}

const areAllClosed = (page: WebcasterPage) =>
  page.run<boolean>("opened.every(({ readyState }) => readyState === 'ended')");
const stateIs = (page: WebcasterPage, state: string) =>
  until(`the page is ${state}`, async () => (await page.state()) === state);

describe.concurrent("while", () => {
  test("the service is told of the end, a second recover() waits for the first, and both can be stopped", async () => {
    const { name, page } = await livePage("end");
    await page.run("void (window.recovered = Promise.allSettled([webcaster.recover(), webcaster.recover()]))");
    await stateIs(page, "stopping");
    await page.run("release()");
    expect(await page.run("recovered.then((all) => all.map(({ status }) => status))")).toEqual([
      "fulfilled",
      "fulfilled",
    ]);
    expect(await page.state()).toBe("live");
    await page.run("webcaster.stopBroadcast()");
    await page.run("webcaster.dispose()");
    expect([await page.state(), await areAllClosed(page)]).toEqual(["idle", true]);
    await until("every publish has ended", () => stage.calls("publish_done", name).length === 2);
    expect(stage.calls("publish", name)).toHaveLength(2);
    await page.page.close();
  }, 60_000);

  test("the service is told of the end, a second dispose() waits as well, and one during recover() stays in effect", async () => {
    const { name, page } = await livePage("end");
    await page.run(`void (window.outcomes = Promise.all([
      webcaster.recover().then(() => "recovered", ({ code }) => code),
      webcaster.dispose().then(() => webcaster.state),
      webcaster.dispose().then(() => webcaster.state),
    ]))`);
    await stateIs(page, "stopping");
    await page.run("release()");
    expect(await page.run("outcomes")).toEqual([1003, "idle", "idle"]);
    expect([await page.state(), await areAllClosed(page)]).toEqual(["idle", true]);
    expect(stage.calls("publish", name)).toHaveLength(1);
    await page.page.close();
  }, 60_000);

  test("recover() opens devices, stopBroadcast() leaves it at the media", async () => {
    const { name, page } = await livePage("devices");
    await page.run("void (window.recovered = webcaster.recover())");
    await stateIs(page, "preparing");
    await page.run("webcaster.stopBroadcast()");
    await page.run("release()");
    await page.run("recovered");
    expect([await page.state(), (await page.said()).errors]).toEqual(["ready", []]);
    await until("the first one's end", () => stage.calls("publish_done", name).length === 1);
    expect(stage.calls("publish", name)).toHaveLength(1);
    await page.run("webcaster.dispose()");
    expect(await areAllClosed(page)).toBe(true);
    await page.page.close();
  }, 60_000);
});
