// `headgate webhook test | deliveries | replay | simulate` from a terminal, against a running service.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { start, until } from "../support/child.ts";
import { startHeadgate } from "../support/headgate.ts";

test("a developer simulates the customer, tests it, reads the deliveries and replays one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-commands-"));
  const certificate = join(folder, "customer.pem");
  const command = (...args: string[]) =>
    start(process.execPath, ["scripts/headgate.mjs", "webhook", ...args], {
      env: { PATH: process.env.PATH, HEADGATE_API_KEY: apiKey },
    });
  const output = async (...args: string[]) => {
    const child = command(...args, "--url", url);
    expect(await child.exit, child.stderr()).toBe(0);
    return child.stdout();
  };
  let [apiKey, url] = ["", ""];
  const answer = ["--status", "403", "--reason", "Not today", "--certificate", certificate];
  const customer = command("simulate", "--port", "0", ...answer);
  const webhook = await until("the simulated customer", () => /https:\/\/localhost:\d+\//.exec(customer.stdout())?.[0]);
  const headgate = await startHeadgate({ env: { HEADGATE_WEBHOOK_CA: certificate } });
  [apiKey, url] = [headgate.apiKey, headgate.http];
  await headgate.call("PUT", "/organisation/webhook", { webhook });

  const tested = JSON.parse(await output("test", "--arguments", "passcode=s3cret")) as Record<string, unknown>;
  expect(tested).toMatchObject({ status: 403, reason: "Not today", allows: false });
  expect(await output("deliveries", "--failed")).toContain(`${String(tested.id)}  publish  `);
  expect(JSON.parse(await output("deliveries", "--json"))).toMatchObject([{ id: tested.id, status: 403 }]);
  expect(JSON.parse(await output("replay", String(tested.id)))).toMatchObject({ id: tested.id, status: 403 });
  await until("both events", () => customer.stdout().split(String(tested.id)).length === 3);
  expect(customer.stdout()).toContain("passcode=s3cret&call=publish&name=");

  const unknown = command("replay", "msg_none", "--url", url);
  expect(await unknown.exit).toBe(1);
  expect(unknown.stderr()).toBe("headgate: 404: Unknown delivery (code 9004)\n");
  customer.kill("SIGTERM");
  expect(await customer.exit).toBe(0);
  await headgate.stop();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);
