// `headgate upgrade` after the primary of the store lost power: packets to it vanish, and nothing is closed. The node's name
// is held on another server by then.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { startSilentProxy } from "../../../bench/_silent-proxy.mjs";
import { until } from "../../support/child.ts";
import { startHeadgate } from "../../support/headgate.ts";
import { isAlive } from "../../support/is-alive.ts";
import { startPostgresPair } from "../../support/postgres-pair.ts";

const closings: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

test("the service is replaced by a new process, on the server that was promoted, and once more", async () => {
  const pair = await startPostgresPair();
  closings.push(() => pair.close());
  const { pathname } = new URL(await pair.newDatabase());
  const folders = [pair.primary.folder, pair.standby.folder];
  const proxies = await Promise.all(folders.map((folder) => startSilentProxy(join(folder, ".s.PGSQL.5432"))));
  closings.push(() => proxies.map((proxy) => proxy.close()));
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join();
  const service = await startHeadgate({ env: { HEADGATE_DATABASE_URL: `postgres://postgres@${hosts}${pathname}` } });
  closings.push(async () => {
    service.process.kill("SIGKILL");
    await service.process.exit;
  });
  const before = await service.newStream();

  proxies[0]?.silence();
  await pair.primary.crash("SIGKILL");
  await pair.standby.promote();
  await until("the store answers again", () =>
    service.newStream().then(
      () => true,
      () => false,
    ),
  );
  let former = service.process.pid;
  for (let times = 1; times <= 2; times += 1) {
    const upgraded = JSON.parse(await service.command(["upgrade"])) as {
      readonly pid: number;
      readonly former_pid: number;
    };
    closings.push(() => killed(upgraded.pid));
    expect(upgraded.former_pid).toBe(former);
    former = upgraded.pid;
    expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
    const names = JSON.stringify(await service.call("GET", "/stream"));
    expect(names).toContain(before);
    await service.newStream();
    if (times === 1) await until("the former process leaves", () => !isAlive(upgraded.former_pid), 60_000);
  }
}, 240_000);

function killed(pid: number): void {
  if (isAlive(pid)) process.kill(pid, "SIGKILL");
}
