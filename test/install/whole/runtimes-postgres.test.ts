// The service on PostgreSQL under other runtimes than the Node that runs these tests: by a socket, by TLS,
// and while the server is unreachable.
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownerIds } from "../../../tools/cluster/postgres.mjs";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer, testCertificates } from "../../support/customer.ts";
import { broadcast, packetsOf } from "../../support/ffmpeg.ts";
import { freePort } from "../../support/free-port.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { content } from "../../support/judge.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres.ts";

const runtimes = process.env.RUNTIMES?.split(",") ?? ["node-24", "deno", "bun"];
const BROADCAST_S = 2;
/** Not in the server's certificate. */
const OTHER_ADDRESS = "127.0.0.2";

let customer: Customer;
let folder: string;
let server: PostgresServer;
let port: number;
beforeAll(async () => {
  customer = await startCustomer();
  folder = mkdtempSync(join(tmpdir(), "headgate-runtimes-postgres-"));
  const { ca, cert, key } = testCertificates();
  const path = (name: string) => join(folder, name);
  for (const [name, text] of Object.entries({ ca, cert, key })) writeFileSync(path(name), text, { mode: 0o600 });
  const { uid, gid } = ownerIds();
  if (uid !== undefined && gid !== undefined) for (const of of ["", "cert", "key"]) chownSync(path(of), uid, gid);
  port = await freePort();
  const tls = { ssl: "on", ssl_cert_file: path("cert"), ssl_key_file: path("key") };
  server = await startPostgres({ listen_addresses: `127.0.0.1,${OTHER_ADDRESS}`, port: `${port}`, ...tls });
});
afterAll(async () => {
  await server?.close();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A new database, at this name of the server. */
async function overTls(host: string): Promise<string> {
  const { pathname } = new URL(await server.newDatabase());
  return `postgres://postgres@${host}:${port}${pathname}?sslmode=verify-full&sslrootcert=${join(folder, "ca")}`;
}

/** The only column of one row. */
async function found(url: string, statement: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return Object.values((await client.query<Record<string, unknown>>(statement)).rows[0] ?? {})[0];
  } finally {
    await client.end();
  }
}

/** A publish in and out, with every frame, whose start and end the customer receives. */
async function publishOnce(headgate: Headgate): Promise<void> {
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}?pass=1`, { seconds: BROADCAST_S, gop: 1_000, keepsCopy: true });
  const played = await until("it is live", () => packetsOf(`${headgate.rtmp}/${name}`).catch(() => null));
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  expect(content(played)).toEqual(content(await encoder.sent()));
  const heard = () => customer.requests.filter(({ body }) => body.includes(`name=${name}&`)).map(({ call }) => call);
  await until("the customer receives the end", () => heard().includes("publish_done"));
  expect(heard()).toEqual(["publish", "publish_done"]);
}

describe.each(runtimes)("on %s", (runtime) => {
  test("a service on PostgreSQL accepts a publish, stores it, and exits with 0", async () => {
    const url = await server.newDatabase();
    const headgate = await startHeadgate({ customer, runtime, env: { HEADGATE_DATABASE_URL: url } });
    await publishOnce(headgate);
    expect(await headgate.stop(), headgate.process.stderr().slice(-2_000)).toBe(0);
    expect(await found(url, "select count(*)::int from publish where ended_at is not null")).toBe(1);
  });

  test("by TLS, too", async () => {
    const url = await overTls("localhost");
    const headgate = await startHeadgate({ customer, runtime, env: { HEADGATE_DATABASE_URL: url } });
    const encrypted = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) where client_port > 0";
    expect(await found(url, encrypted)).toBe(true);
    await publishOnce(headgate);
    expect(await headgate.stop(), headgate.process.stderr().slice(-2_000)).toBe(0);
  });

  test("a service does not start with TLS to a server that has another name or an untrusted certificate", async () => {
    const starting = async (url: string) => await startHeadgate({ runtime, env: { HEADGATE_DATABASE_URL: url } });
    await expect(starting(await overTls(OTHER_ADDRESS))).rejects.toThrow("does not match certificate's altnames");
    const unknown = new URL(await overTls("localhost"));
    unknown.searchParams.delete("sslrootcert");
    await expect(starting(unknown.href)).rejects.toThrow(/self[- ]signed certificate|unable to (verify|get)/);
  });

  test("the service recovers when the server is back", async () => {
    const env = { HEADGATE_DATABASE_URL: await server.newDatabase() };
    const headgate = await startHeadgate({ customer, runtime, env });
    const readiness = async () => (await fetch(`${headgate.metrics}/readyz`)).status;
    await server.stop();
    await until("it is not ready", async () => (await readiness()) === 503);
    await server.start();
    await until("it is ready", async () => (await readiness()) === 200);
    await publishOnce(headgate);
    expect(await headgate.stop(), headgate.process.stderr().slice(-2_000)).toBe(0);
  });
});
