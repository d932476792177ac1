// A second HTTPS server for a redirect to point to: tests check that nobody connects.

import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { testCertificates } from "./customer.ts";

export interface RedirectTarget {
  readonly url: string;
  /** TCP connections so far. */
  connections(): number;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1, with a certificate of the customers' CA: if followed, it would answer. */
export async function startRedirectTarget(): Promise<RedirectTarget> {
  const { key, cert } = testCertificates();
  let connections = 0;
  const server = createServer({ key, cert }, (_, response) => void response.end());
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    connections: () => connections,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
