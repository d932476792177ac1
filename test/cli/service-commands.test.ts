// Commands that call the running service: what they change holds at once, without a restart.
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PNG } from "pngjs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { command } from "../support/command.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

let headgate: Headgate;
beforeAll(async () => {
  headgate = await startHeadgate();
});
afterAll(() => headgate?.stop());

const run = (...words: string[]) =>
  command([...words, "--url", headgate.http], { PATH: process.env.PATH, HEADGATE_API_KEY: headgate.apiKey });

test("webhook, settings, usage and audit are at hand on the command line, as the API's own records", async () => {
  const json = async (...words: string[]) => JSON.parse((await run(...words, "--json")).out) as Record<string, unknown>;
  const webhook = "https://93.184.215.14/publish";
  expect(await run("webhook", "show")).toMatchObject({ code: 0, out: "No webhook is set.\n" });
  expect(await json("webhook", "set", webhook)).toMatchObject({ webhook });
  expect((await run("webhook", "show")).out).toBe(`The webhook is ${webhook}\n`);
  expect((await json("webhook", "secret")).secret).toMatch(/^whsec_/);
  expect(await json("webhook", "rm")).toMatchObject({ webhook: null });

  expect(await json("settings", "set", "require_token", "on")).toMatchObject({ require_token: true });
  expect(await json("settings", "set", "hold_s", "7")).toMatchObject({ hold_s: 7 });
  expect((await run("settings", "show")).out).toMatch(/^hold_s +7$/m);
  expect(await run("settings", "set", "require_token", "yes")).toMatchObject({
    code: 2,
    err: expect.stringContaining("require_token is on or off, not yes"),
  });
  expect(await run("settings", "set", "hold", "7")).toMatchObject({
    code: 2,
    err: expect.stringContaining("there is no setting hold;") as string,
  });
  expect(await json("settings", "show")).toEqual(await json("api", "get", "/organisation/settings"));

  const { id } = await headgate.call("POST", "/stream");
  const { id: upstream } = await json("upstreams", "add", `${id}`, "rtmp://127.0.0.1:1/live/key", "--label", "Main");
  expect(await headgate.call("GET", `/stream/${id}/upstream`)).toMatchObject([{ id: upstream, label: "Main" }]);
  const upstreams = (verb: string) => run("upstreams", verb, `${id}`, `${upstream}`);
  expect(await upstreams("test")).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^dns +\d+ ms +ok\ntcp +\d+ ms +failed\nIt failed \(connection_refused\): /m) as string,
  });
  expect((await upstreams("pause")).out).toBe("Nothing is pushed there until it is resumed.\n");
  expect((await run("upstreams", "ls", `${id}`)).out).toMatch(/ stream +paused /);
  expect((await upstreams("resume")).code).toBe(0);
  expect((await upstreams("retry")).err).toContain("Unknown upstream");
  expect((await upstreams("rm")).code).toBe(0);
  expect(await headgate.call("GET", `/stream/${id}/upstream`)).toEqual([]);

  const audit = (await run("audit", "--quantity", "50")).out;
  expect(audit).toMatch(/^at +who +action +subject +stream +detail$/m);
  expect(audit).toMatch(/ key \w{8} +webhook\.set /);
  expect((await run("usage", "--from", "2026-01-01", "--to", "2026-01-02")).out).toContain("total ");
  expect((await run("api", "GET", "//other.example/")).code).toBe(2);
  expect((await run("api", "PUT", "/organisation/settings", "7")).code).toBe(2);
}, 120_000);

test("the logo is set from a file, shown and removed, and a file that is none is refused in words", async () => {
  const logo = (...words: string[]) => run("logo", ...words);
  const file = join(tmpdir(), `headgate-logo-${process.pid}.png`);
  writeFileSync(file, PNG.sync.write(new PNG({ width: 40, height: 20 })));
  const set = await logo("set", file);
  expect(set).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^The logo is 40 x 20 pixels, at \/logo\/[\da-f]{64}\.png\n$/) as string,
  });
  expect(await logo("show")).toEqual(set);
  expect((await logo("set", "package.json")).err).toMatch(/^headgate: 400: Invalid value: png /);
  expect(await logo("set", `${file}.missing`)).toMatchObject({
    code: 2,
    err: expect.stringContaining(".missing cannot be read: ENOENT") as string,
  });
  expect(await logo("show")).toEqual(set);
  expect((await logo("rm")).out).toBe("No logo is set.\n");
  rmSync(file);
}, 120_000);
