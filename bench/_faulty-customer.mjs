// A customer's endpoint for every kind of fault of R8, each on its own port; prints their URLs as one line of
// JSON.
import { createServer } from "node:https";
import { connect, createServer as createTcpServer } from "node:net";
import { gzipSync } from "node:zlib";

const [cert, key] = process.argv.slice(2);
const SLOW_MS = 5_000;
const LARGE_BYTES = 100_000_000;
/** 125 MB compressed to about 120 kB. */
const BOMB = gzipSync(Buffer.alloc(1_000_000_000 / 8), { level: 9 });

const status =
  (code, headers = {}) =>
  (_, response) =>
    response.writeHead(code, headers).end();

const https = {
  ok: status(200),
  hang: () => {},
  slow: (_, response) => setTimeout(() => response.writeHead(200).end(), SLOW_MS),
  500: status(500),
  403: (_, response) => response.writeHead(403, { "content-type": "text/plain" }).end("Not today"),
  204: status(204),
  301: status(301, { location: "https://localhost/" }),
  reset: (request) => request.socket.destroy(),
  // Neither this nor the bomb admits a publish: their status is not 200, and their body is not read.
  "100 MB": (_, response) => {
    response.writeHead(403, { "content-type": "text/plain", "content-length": String(LARGE_BYTES) });
    const chunk = Buffer.alloc(64 * 1024, "x");
    const write = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", write).on("error", () => {});
    write();
  },
  bomb: (_, response) => {
    response.writeHead(403, { "content-type": "text/plain", "content-encoding": "gzip" }).end(BOMB);
  },
};

const urls = {};
for (const [kind, answer] of Object.entries(https)) {
  const server = createServer({ cert, key }, (request, response) => {
    response.on("error", () => {});
    request.on("error", () => {}).resume();
    request.once("end", () => answer(request, response));
  });
  server.on("clientError", (_, socket) => socket.destroy());
  urls[kind] = await urlOf(server);
}

// A server would not start with a key that does not match the certificate; an untrusted certificate works.
const { selfSigned } = await import("../dist/cli/webhook/self-signed.js").catch(() => ({ selfSigned: null }));
const untrusted = selfSigned?.(Date.now(), 2);
if (untrusted) urls["bad certificate"] = await urlOf(createServer(untrusted, https.ok).on("tlsClientError", () => {}));

// TLS that is cut off after 40 bytes of the server's answer.
const behind = createServer({ cert, key }, https.ok);
const { port } = new URL(await urlOf(behind));
urls["truncated TLS"] = await urlOf(
  createTcpServer((socket) => {
    const inner = connect(Number(port), "127.0.0.1").on("error", () => {});
    socket.on("error", () => {}).pipe(inner);
    inner.once("data", (chunk) => socket.end(chunk.subarray(0, 40)));
  }),
);
urls.NXDOMAIN = "https://nobody.invalid/hook";
console.log(JSON.stringify(urls));

async function urlOf(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `https://localhost:${server.address().port}/hook`;
}
