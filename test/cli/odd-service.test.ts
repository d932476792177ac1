// Commands whose --url leads to something else than a headgate (a proxy that redirects, a web page, an answer that breaks
// off), or whose output leads nowhere. They say so, in one line and with the documented exit code, and the key reaches
// nobody else.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { start } from "../support/child.ts";
import { command } from "../support/command.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const run = (url: string, ...words: string[]) =>
  command([...words, "--url", url], { PATH: process.env.PATH, HEADGATE_API_KEY: "key" });

test("a redirect is named, not followed: the key reaches no other host", async () => {
  const requests: string[] = [];
  const elsewhere = await serve(({ url = "" }, response) => {
    requests.push(url);
    response.end("{}");
  });
  const url = await serve((request, response) =>
    response.writeHead(301, { location: `${elsewhere}${request.url}` }).end("<h1>Moved</h1>"),
  );
  expect(await run(url, "sessions", "kick", "7")).toEqual({
    code: 2,
    out: "",
    err: `headgate: ${url} redirects to ${elsewhere}/session/7/kick: give the address of the service itself (--url)\n`,
  });
  expect(requests).toEqual([]);
});

test.each([
  ["a web page", (url: string) => `${url} answers, but not as headgate does (--url)`, "<h1>Welcome</h1>"],
  ["null", (url: string) => `${url} answers, but not as headgate does (--url)`, "null"],
  ["an answer that breaks off", (url: string) => `the answer of ${url} broke off`, null],
])("%s is no success", async (_, said, body) => {
  const url = await serve((_request, response) => {
    if (body !== null) response.end(body);
    else response.writeHead(200, { "content-length": 100 }).write("{", () => response.destroy());
  });
  for (const words of [["webhook", "rm"], ["sessions", "ls"], ["usage"]]) {
    const { code, out, err } = await run(url, ...words);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(`headgate: ${said(url)}`);
    expect(err).not.toContain("    at ");
  }
});

test.each(["config schema", "openapi", "init"])("%s to a full disk fails, and says why", async (words) => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-full-"));
  const env = { PATH: process.env.PATH, HEADGATE_DATA_DIR: folder };
  const child = start("sh", ["-c", `exec node scripts/headgate.mjs ${words} > /dev/full`], { env });
  const code = await child.exit;
  rmSync(folder, { recursive: true });
  expect([code, child.stderr()]).toEqual([
    1,
    expect.stringMatching(/^headgate: the output cannot be written: ENOSPC: .*\n$/) as string,
  ]);
});

test("a reader that has read enough is no failure", async () => {
  const child = start("sh", ["-c", "{ node scripts/headgate.mjs config schema; echo $? >&2; } | head -1"], {
    env: { PATH: process.env.PATH },
  });
  expect([await child.exit, child.stderr()]).toEqual([0, "0\n"]);
});
