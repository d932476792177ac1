// The upstreams of a stream as people use them. Real Chromium, real service, ffmpeg.
import { expect, test, vi } from "vitest";
import { until } from "../support/child.ts";
import { useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";

/** A browser, an encoder and the service share the machine with other load. */
vi.setConfig({ testTimeout: 90_000 });

const dashboard = useDashboard();
const { open } = dashboard;

test("upstreams are added permanently and for one broadcast, show why they fail, and are removed", async () => {
  const stream = (await dashboard.headgate.call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const encoder = broadcast(`${dashboard.headgate.rtmp}/${stream.ingest.rtmp.streamname}`, { seconds: 90 });
  const state = async () => (await dashboard.headgate.call("GET", `/stream/${stream.id}`))["state"];
  await until("live", async () => (await state()) === "live");
  const { page, ...dash } = await open(`/dashboard/streams/${stream.id}`, "user");
  const add = async (label: string, isOnce: boolean) => {
    await dash.press("Add upstream");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Address, with the stream key").fill(`rtmp://127.0.0.1:9/live/secret-${label}`);
    await dialog.getByLabel("Label").fill(label);
    if (isOnce) await dialog.getByLabel(/^This broadcast only/).check();
    await dialog.getByRole("button", { name: "Add upstream" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await page.locator("video").waitFor();
  await add("Main", false);
  await add("Backup", true);
  const rows = page.getByRole("table", { name: "Upstreams" }).locator("tbody tr");
  await until("both", async () => (await rows.count()) === 2);
  await until("their errors", async () => /Retrying soon/.test((await rows.allInnerTexts()).join()));
  expect(await page.locator("main").innerText()).not.toContain("secret-");
  expect(await rows.first().innerText()).toContain("No server on that port");
  const act = async (label: string, what: string) => {
    await page.getByRole("button", { name: `Actions for ${label}` }).click();
    await page.getByRole("menuitem", { name: what }).click();
  };
  await act("Backup", "Remove");
  await dash.press("Remove upstream");
  await until("one", async () => (await rows.count()) === 1);
  await act("Main", "Pause");
  await until("paused", async () => /Paused/.test(await rows.first().innerText()));
  await act("Main", "Resume");
  await until("resumed", async () => !/Paused/.test(await rows.first().innerText()));
  encoder.kill("SIGTERM");
  await encoder.exit;
  await until("when live", async () => /When live/.test(await rows.first().innerText()));
  await page.getByRole("button", { name: "Test Main" }).click();
  const test = page.getByRole("dialog");
  await test.getByText("No server on that port").waitFor();
  expect(await test.innerText()).toMatch(/Done\s+Find the address\s+\d+ ms\s+Failed\s+Connect\s+\d+ ms/);
  await test.getByRole("button", { name: "Close" }).last().click();
  await act("Main", "Remove");
  await dash.press("Remove upstream");
  await page.getByText("No upstreams").waitFor();
});
