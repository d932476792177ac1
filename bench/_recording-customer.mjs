// A customer in this process that fails as configured, records every event that it answered, and can be restarted.
import { createServer } from "node:https";
import { certificate } from "./_webhook.mjs";

/** `fails(call)`: how this request fails, `reset`, `hang` or a status; null if it succeeds. */
export async function startRecordingCustomer(fails = () => null) {
  /** By client id, in order of arrival. */
  const events = new Map();
  let failures = 0;
  let port = 0;
  let server = null;

  async function take(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString("latin1");
    const fields = new URLSearchParams(body);
    const [call, clientId] = [fields.get("call"), Number(fields.get("clientid"))];
    const fault = fails(call);
    const event = { call, id: request.headers["webhook-id"], body, fields, answered: fault === null };
    events.set(clientId, [...(events.get(clientId) ?? []), event]);
    if (fault === null) return response.writeHead(200, { "content-length": "0" }).end();
    failures += 1;
    if (fault === "reset") return request.socket.destroy();
    if (fault !== "hang") return response.writeHead(fault).end();
  }

  async function start() {
    server = createServer(certificate, (request, response) => {
      response.on("error", () => {});
      take(request, response).catch(() => {});
    });
    server.on("tlsClientError", () => {});
    await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
    ({ port } = server.address());
  }

  function stop() {
    return new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }

  await start();
  return {
    url: `https://localhost:${port}/hook`,
    events,
    failures: () => failures,
    async restart() {
      await stop();
      await start();
    },
    stop,
  };
}

/** What is wrong with the events that a customer got, as texts; empty if everything is as W17 and W18 require.
 *  `sent`: bytes in by client id of each accepted publish, or null where they are not known. */
export function faultsOf(events, sent) {
  const wrong = [];
  let done = 0;
  let repeated = 0;
  for (const [clientId, bytesIn] of sent) {
    const all = events.get(clientId) ?? [];
    const ends = all.filter(({ call }) => call === "publish_done");
    if (!ends.some(({ answered }) => answered)) wrong.push(`${clientId}: lost`);
    else done += 1;
    repeated += Math.max(0, ends.length - 1);
    if (new Set(ends.map(({ id }) => id)).size > 1) wrong.push(`${clientId}: several ids`);
    if (new Set(ends.map(({ body }) => body)).size > 1) wrong.push(`${clientId}: one id, several bodies`);
    if (
      all.findLastIndex(({ call }) => call !== "publish_done") > all.findIndex(({ call }) => call === "publish_done")
    ) {
      if (ends.length > 0) wrong.push(`${clientId}: out of order`);
    }
    const told = ends[0]?.fields.get("bytes_in");
    if (bytesIn !== null && told !== undefined && told !== String(bytesIn)) {
      wrong.push(`${clientId}: bytes_in ${told}, sent ${bytesIn}`);
    }
  }
  return { done, repeated, wrong };
}
