// `headgate doctor` with real faults: each finding says what is wrong, its consequence and its remedy.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { clockFinding, descriptors } from "../../ts/cli/doctor/machine.ts";
import { startCustomer, testCertificates } from "../support/customer.ts";
import { changed, doctorStores, empty, finding, folder, headgate, LIMIT_MS, newStore } from "../support/doctor.ts";
import { freePort } from "../support/free-port.ts";
import { startHeadgate } from "../support/headgate.ts";
import { startPostgres } from "../support/postgres.ts";
import { trustFile } from "../support/trust-file.ts";
import { inWholeRun } from "../support/whole-run.ts";

doctorStores();

describe.concurrent("the store", () => {
  test(
    "a missing key",
    async () => {
      const dataDir = await newStore();
      renameSync(join(dataDir, "headgate.key"), join(dataDir, "elsewhere"));
      expect(await finding("key ", { HEADGATE_DATA_DIR: dataDir })).toMatchObject({
        ...{ code: 1, state: "bad", detail: "is missing" },
        remedy: expect.stringContaining("copy it from another node"),
      });
    },
    LIMIT_MS,
  );

  inWholeRun(
    "the key of another store",
    async () => {
      const dataDir = await newStore();
      copyFileSync(join(empty, "headgate.key"), join(dataDir, "headgate.key"));
      expect(await finding("key ", { HEADGATE_DATA_DIR: dataDir })).toMatchObject({
        ...{ code: 1, state: "bad", detail: expect.stringContaining("is not the key this store was made with") },
      });
    },
    LIMIT_MS,
  );

  inWholeRun(
    "a key that others can read",
    async () => {
      const dataDir = await newStore();
      chmodSync(join(dataDir, "headgate.key"), 0o644);
      expect(await finding("key ", { HEADGATE_DATA_DIR: dataDir })).toMatchObject({
        ...{ state: "warning", detail: "other users of this machine can read it" },
        remedy: `chmod 600 ${join(dataDir, "headgate.key")}`,
      });
    },
    LIMIT_MS,
  );

  test(
    "a file that is not a store, and an unreachable server",
    async () => {
      const dataDir = mkdtempSync(join(folder, "data-"));
      writeFileSync(join(dataDir, "headgate.db"), "no database");
      const broken = await finding("store in ", { HEADGATE_DATA_DIR: dataDir });
      expect(broken).toMatchObject({
        code: 1,
        state: "bad",
        detail: expect.stringContaining("file is not a database"),
      });
      const away = await finding("store in ", { HEADGATE_DATABASE_URL: "postgres://me:s3cret@127.0.0.1:1/headgate" });
      expect(away).toMatchObject({ code: 1, state: "bad", detail: expect.stringContaining("ECONNREFUSED") });
      expect(JSON.stringify(away)).not.toContain("s3cret");
    },
    LIMIT_MS,
  );

  test(
    "a good one with its key",
    async () => {
      expect(await finding("store in ", {})).toMatchObject({ state: "good", detail: "opens, 0 streams" });
      expect(await finding("key ", {})).toMatchObject({ state: "good" });
      expect(await finding("pages", {})).toMatchObject({ state: "good" });
      expect(await finding("data directory ", {})).toMatchObject({ detail: expect.stringMatching(/^\d+ MB free$/) });
    },
    LIMIT_MS,
  );
});

describe.concurrent("the configuration", () => {
  inWholeRun(
    "an unusable setting is a finding, and checks that do not need it are done all the same",
    async () => {
      const env = { HEADGATE_WEBHOOK_CA: join(folder, "no-such.pem"), HEADGATE_RTMP_PROT: "1" };
      const { code, state, detail } = await finding("configuration", env);
      expect([code, state]).toEqual([2, "bad"]);
      expect(detail).toMatch(/HEADGATE_RTMP_PROT|no-such\.pem/);
      expect(await finding("media core", env)).toMatchObject({ state: "good" });
    },
    LIMIT_MS,
  );

  inWholeRun(
    "certificate files that are missing, or do not belong together",
    async () => {
      const files = (certFile: string, keyFile: string) => ({
        HEADGATE_HTTP_TLS_CERT: certFile,
        HEADGATE_HTTP_TLS_KEY: keyFile,
      });
      const one = testCertificates();
      const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
      const write = (name: string, text: string) => {
        const path = join(folder, name);
        writeFileSync(path, text);
        return path;
      };
      const cert = write("one.pem", one.cert);
      const away = await finding("certificate ", files(cert, join(folder, "away.pem")));
      expect(away).toMatchObject({ code: 1, state: "bad", detail: expect.stringContaining("away.pem") });
      expect(
        await finding(
          "certificate ",
          files(cert, write("other.key", other.export({ type: "pkcs8", format: "pem" }).toString())),
        ),
      ).toMatchObject({
        ...{ state: "bad", detail: expect.stringContaining("do not belong together") },
        why: "headgate serve does not start with files that it cannot use",
      });
    },
    LIMIT_MS,
  );

  test(
    "a name that does not resolve",
    async () => {
      expect(await finding("name ", { HEADGATE_UPSTREAM_PUSH: "rtmp://nowhere.invalid/live/{name}" })).toMatchObject({
        ...{ code: 1, what: "name nowhere.invalid (upstream.push)", state: "bad" },
        ...{ detail: expect.stringContaining("does not resolve"), why: "no stream can be pushed to it" },
      });
      expect(await finding("names ", { HEADGATE_INGEST_HOSTS: "localhost" })).toMatchObject({ state: "good" });
    },
    LIMIT_MS,
  );
});

describe("addresses", () => {
  inWholeRun(
    "a public URL that leads here, elsewhere and nowhere",
    async () => {
      const port = await freePort();
      const env = { HEADGATE_HTTP_PORT: String(port), HEADGATE_HTTP_HOST: "127.0.0.1" };
      const here = { ...env, HEADGATE_PUBLIC_URL: `http://127.0.0.1:${port}` };
      expect(await finding("http.public_url", here)).toMatchObject({ state: "good", detail: "leads here" });
      const other: Server = createServer((_, response) => response.writeHead(404).end("another program"));
      await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
      const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      expect(await finding("http.public_url", { ...env, HEADGATE_PUBLIC_URL: elsewhere })).toMatchObject({
        ...{
          code: 1,
          state: "bad",
          detail: expect.stringContaining("leads elsewhere: /.well-known/jwks.json returned 404"),
        },
      });
      other.closeAllConnections();
      await new Promise((resolve) => other.close(resolve));
      expect(await finding("http.public_url", { ...env, HEADGATE_PUBLIC_URL: elsewhere })).toMatchObject({
        ...{ state: "warning", detail: expect.stringMatching(/^does not respond when called .*ECONNREFUSED/) },
      });
    },
    LIMIT_MS,
  );

  inWholeRun(
    "media addresses that are reachable only from this network, or do not belong to this machine",
    async () => {
      const of = (address: string) => finding("addresses of media", { HEADGATE_PUBLIC_ADDRESSES: address });
      expect(await of("10.1.2.3")).toMatchObject({
        state: "warning",
        detail: expect.stringContaining("reachable only from this network"),
      });
      expect(await of("203.0.113.1")).toMatchObject({ state: "warning", remedy: expect.stringMatching(/^forward /) });
    },
    LIMIT_MS,
  );
});

describe("the webhook", () => {
  const withWebhook = async (url: string | null) => {
    const dataDir = await newStore();
    await changed(dataDir, (db) => db.updateTable("organisation").set({ webhook: url }).execute());
    return { HEADGATE_DATA_DIR: dataDir, HEADGATE_DEV: "1" };
  };

  inWholeRun(
    "one that answers, one without a trusted certificate, one that is unreachable, and none",
    async () => {
      const customer = await startCustomer();
      const { host } = new URL(customer.url);
      const env = await withWebhook(`${customer.url}?secret=1`);
      const trusted = await finding("webhook ", { ...env, HEADGATE_WEBHOOK_CA: trustFile(customer.ca) });
      expect(trusted).toMatchObject({ what: `webhook of Headgate at ${host}`, detail: "responds (200 to HEAD)" });
      expect(customer.requests.map(({ method, body }) => [method, body])).toEqual([["HEAD", ""]]);
      const untrusted = await finding("webhook ", env);
      expect(untrusted).toMatchObject({ code: 1, state: "bad", detail: expect.stringMatching(/CERT|certificate/) });
      expect(untrusted.why).toBe("every publish of this organisation is rejected while its webhook does not respond");
      const guarded = await finding("webhook ", { ...env, HEADGATE_DEV: "0" });
      expect(guarded).toMatchObject({ state: "bad", detail: expect.stringContaining("publicly reachable") });
      await customer.close();
      const away = await finding("webhook ", env);
      expect(away).toMatchObject({ state: "bad", detail: expect.stringContaining("ECONNREFUSED") });
      expect(JSON.stringify(away)).not.toContain("secret=1");
      expect(await finding("webhook", await withWebhook(null))).toMatchObject({
        ...{ state: "warning", why: "anyone who knows a stream name may publish and play it" },
      });
    },
    LIMIT_MS,
  );

  test(
    "a clock that differs from the customer's",
    async () => {
      const customer = await startCustomer();
      const date = (ms: number) =>
        customer.answer({ status: 200, headers: { date: new Date(Date.now() + ms).toUTCString() } });
      const env = { ...(await withWebhook(customer.url)), HEADGATE_WEBHOOK_CA: trustFile(customer.ca) };
      date(3_600_000);
      expect(await finding("clock", env)).toMatchObject({
        code: 1,
        state: "bad",
        detail: expect.stringMatching(/^3[56]\d\d s behind localhost/),
      });
      date(-60_000);
      expect(await finding("clock", env)).toMatchObject({
        state: "warning",
        detail: expect.stringContaining("s ahead of localhost"),
      });
      await customer.close();
    },
    LIMIT_MS,
  );
});

describe("the machine", () => {
  inWholeRun(
    "a clock that was set back behind the store's newest entry",
    async () => {
      const dataDir = await newStore();
      const at = Date.now() + 3_600_000;
      await changed(dataDir, async (db) => {
        const { id } = await db.selectFrom("organisation").select("id").executeTakeFirstOrThrow();
        const entry = {
          who_kind: "operator" as const,
          who_id: null,
          action: "a",
          subject: "b",
          detail: "{}",
          request_id: null,
        };
        await db
          .insertInto("audit")
          .values({ id: "zzz", organisation_id: id, at, ...entry })
          .execute();
      });
      expect(await finding("clock", { HEADGATE_DATA_DIR: dataDir })).toMatchObject({
        ...{
          code: 1,
          state: "bad",
          detail: expect.stringContaining("behind the newest entry of the store: it was set back"),
        },
      });
    },
    LIMIT_MS,
  );

  test(
    "a clock that nothing synchronises, and one that agrees with the database's",
    async () => {
      expect(clockFinding([], null, 1, false)).toMatchObject({
        state: "warning",
        detail: "it is not synchronised (NTP)",
      });
      const server = await startPostgres();
      const env = {
        HEADGATE_DATA_DIR: join(folder, randomBytes(4).toString("hex")),
        HEADGATE_DATABASE_URL: await server.newDatabase(),
      };
      await headgate(["init"], env);
      expect((await finding("clock", env)).detail).toMatch(/agrees with the database server$|it is not synchronised/);
      await server.close();
    },
    LIMIT_MS,
  );

  test(
    "too few file descriptors",
    async () => {
      const few = await finding("file descriptors", {}, "ulimit -n 512;");
      expect(few).toMatchObject({
        state: "warning",
        detail: "512; 65536 are recommended",
        remedy: expect.stringContaining("LimitNOFILE=65536"),
      });
      const wanted = { HEADGATE_LIMITS_RTMP_CONNECTIONS: "5000" };
      expect(await finding("file descriptors", wanted, "ulimit -n 4096;")).toMatchObject({
        ...{ code: 1, state: "bad", detail: "4096, fewer than limits.rtmp_connections (5000) needs" },
      });
      expect(descriptors(null, "Max open files            65536                65536                files\n")).toEqual([
        { what: "file descriptors", state: "good", detail: "65536" },
      ]);
    },
    LIMIT_MS,
  );

  test(
    "a first-start.txt that is still there",
    async () => {
      const dataDir = await newStore();
      writeFileSync(join(dataDir, "first-start.txt"), "secrets");
      expect(await finding(join(dataDir, "first-start.txt"), { HEADGATE_DATA_DIR: dataDir })).toMatchObject({
        ...{ code: 0, state: "warning", remedy: "store them elsewhere, then delete the file" },
      });
    },
    LIMIT_MS,
  );

  test(
    "two settings with the same port, unless their hosts differ",
    async () => {
      const port = String(await freePort());
      const equal = { HEADGATE_HTTP_PORT: port, HEADGATE_METRICS_PORT: port };
      expect(await finding("metrics.port", equal)).toMatchObject({
        ...{ code: 1, state: "bad", detail: "is the same as http.port" },
      });
      const apart = { HEADGATE_HTTP_HOST: "127.0.0.2", HEADGATE_METRICS_HOST: "127.0.0.1" };
      expect(await finding("metrics.port", { ...equal, ...apart })).toMatchObject({ state: "good", detail: "free" });
      // Media workers also listen for TCP.
      const media = { HEADGATE_RTMP_PORT: port, HEADGATE_MEDIA_PORT: port, HEADGATE_MEDIA_WORKERS: "1" };
      expect(await finding("media.port", media)).toMatchObject({
        ...{ code: 1, state: "bad", detail: "is the same as rtmp.port" },
      });
    },
    LIMIT_MS,
  );

  test(
    "a port in use, by the service itself or by another program",
    async () => {
      const service = await startHeadgate();
      try {
        const [http, metrics] = [service.http, service.metrics].map((url) => new URL(url).port);
        const ports = { HEADGATE_HTTP_PORT: String(http), HEADGATE_HTTP_HOST: "127.0.0.1" };
        const own = { ...ports, HEADGATE_METRICS_PORT: String(metrics) };
        expect(await finding("http.port", own)).toMatchObject({
          ...{ state: "good", detail: "in use by the running service" },
        });
        expect(await finding("http.port", ports)).toMatchObject({
          ...{ state: "warning", detail: "in use, and no headgate answers on metrics.port" },
        });
      } finally {
        await service.stop();
      }
    },
    LIMIT_MS,
  );

  test(
    "the UDP receive buffer that the kernel grants",
    async () => {
      const { state, detail } = await finding("receive buffer", {});
      if (state === "good") expect(detail).toBe("4194304 bytes");
      else expect(detail).toMatch(/^the kernel buffers \d+ bytes per media port, 4194304 were requested: run `sysctl/);
    },
    LIMIT_MS,
  );
});

test(
  "the text is one line for each good finding, and has consequence and remedy for the others",
  async () => {
    const { code, out, err } = await headgate(["doctor"], {
      HEADGATE_DATA_DIR: empty,
      HEADGATE_HTTP_HOST: "203.0.113.1",
    });
    expect(code).toBe(1);
    expect(out).toMatch(
      /^BAD {2}http\.port 203\.0\.113\.1:8080: .*\n {7}why: headgate serve exits with 3\n {7}do: {2}set http\.host/m,
    );
    expect(err).toMatch(/^headgate: \d+ of \d+ checks found a problem that must be fixed$/m);
  },
  LIMIT_MS,
);
