// Requests to servers that an organisation names: the address guard, the deadline, the limit of the body, no redirects.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createGuardedFetch } from "../../ts/publish/addresses/guarded-fetch.ts";

const GET = { method: "GET", headers: {}, body: null };
let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serving(listener: RequestListener): Promise<number> {
  const opened = createServer(listener);
  server = opened;
  await new Promise<void>((resolve) => opened.listen(0, "127.0.0.1", resolve));
  return (opened.address() as AddressInfo).port;
}

const options = { ca: null, resolve: async () => ["127.0.0.1"] };
const inDev = createGuardedFetch({ ...options, dev: true, limitMs: 200 });
const guarded = createGuardedFetch({ ...options, dev: false });

test("a request is sent with method, headers and body, and a redirect is returned, not followed", async () => {
  const seen: string[] = [];
  const port = await serving((request, response) => {
    request.on("data", (chunk: Buffer) => seen.push(`${request.method} ${request.headers["content-type"]} ${chunk}`));
    request.on("end", () => response.writeHead(302, { location: "/elsewhere" }).end());
  });
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const url = `http://issuer.example:${port}/token`;
  const response = await inDev("org", url, { method: "POST", headers, body: "code=1" });
  expect(response.status).toBe(302);
  expect(seen).toEqual(["POST application/x-www-form-urlencoded code=1"]);
});

test("no byte is sent to an address of an internal network, named or written as a number", async () => {
  let requests = 0;
  const port = await serving((_, response) => {
    requests += 1;
    response.end();
  });
  for (const host of ["issuer.example", "127.0.0.1", "[::ffff:127.0.0.1]"]) {
    await expect(guarded("org", `http://${host}:${port}/`, GET)).rejects.toThrow("address refused");
  }
  expect(requests).toBe(0);
});

test("an answer that does not begin, or does not end, is given up in time", async () => {
  const silent = await serving((request, response) => {
    if (request.url === "/endless") response.write("{");
  });
  for (const path of ["/silent", "/endless"]) {
    await expect(inDev("org", `http://issuer.example:${silent}${path}`, GET)).rejects.toThrow(
      "no answer within 200 ms",
    );
  }
});

test("a body above the limit is not read to its end", async () => {
  const port = await serving((_, response) => {
    response.end(Buffer.alloc(300_000));
  });
  await expect(inDev("org", `http://issuer.example:${port}/`, GET)).rejects.toThrow("longer than 262144 bytes");
});
