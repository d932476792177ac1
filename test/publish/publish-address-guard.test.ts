// Webhook addresses: decision W21 and R4.

import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { buildConnector } from "undici/index.js";
import { describe, expect, test } from "vitest";
import {
  AddressRefused,
  checkWebhookUrl,
  guardConnector,
  guardedLookup,
  resolveUpstream,
} from "../../ts/publish/addresses/address-guard.ts";
import { refusalOfAddress } from "../../ts/publish/addresses/address-table.ts";

const REFUSED = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "10.255.255.255",
  "100.64.0.1",
  "100.100.100.200",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "169.254.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.8",
  "192.0.0.192",
  "192.0.2.1",
  "192.31.196.1",
  "192.52.193.1",
  "192.88.99.1",
  "192.168.0.1",
  "192.168.255.255",
  "192.175.48.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::7f00:1",
  "::127.0.0.1",
  "::8.8.8.8",
  "::ffff:127.0.0.1",
  "::ffff:8.8.8.8",
  "::ffff:7f00:1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::8.8.8.8",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:2::1",
  "2001:10::1",
  "2001:20::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:808:808::1",
  "2620:4f:8000::1",
  "3fff::1",
  "5f00::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "ff0e::1",
  "4000::1",
  "localhost",
  "example.com",
  "",
  "127.1",
  "0x7f.0.0.1",
  "0177.0.0.1",
  "2130706433",
  "[::1]",
];
const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.1",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2001:200::1",
  "2001:4860:4860::8888",
  "2606:4700::1111",
  "2a00:1450::1",
  "2003::1",
  "3ffe::1",
];

describe("the address table", () => {
  test.each(REFUSED)("refuses %s", (address) => {
    expect(refusalOfAddress(address)).not.toBeNull();
  });
  test.each(PUBLIC)("accepts %s", (address) => {
    expect(refusalOfAddress(address)).toBeNull();
  });
});

describe("a webhook URL at save", () => {
  const resolve = async (host: string) => {
    if (host === "public.example") return ["93.184.216.34"];
    if (host === "mixed.example") return ["93.184.216.34", "10.0.0.1"];
    if (host === "inside.example") return ["::ffff:10.0.0.1"];
    throw new Error("ENOTFOUND");
  };
  const check = (url: string) => checkWebhookUrl(url, { dev: false, resolve });

  test.each([
    "https://public.example/hook",
    "https://public.example:8443/a?b=c",
    "https://unknown.example/",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]/x",
    "HTTPS://public.example",
  ])("%s is saved", async (url) => {
    expect(await check(url)).toBeNull();
  });

  test.each([
    "http://public.example/",
    "ftp://public.example/",
    "public.example",
    "",
    "https://",
    "https:///public.example",
    "https:public.example",
    "https://mixed.example/",
    "https://inside.example/",
    "https://user@public.example/",
    "https://user:pass@public.example/",
    "https://@public.example/",
    "https://public.example/#f",
    "https://public.example/#",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://0/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::7f00:1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://169.254.169.254/latest",
    "https://①②⑦.0.0.1/",
    "https://127。0。0。1/",
    " https://public.example/",
    "https://public.example/\n",
    "https://public.example\\@127.0.0.1/",
    "https://public.example:0/",
    "https://public.example:99999/",
    `https://public.example/${"a".repeat(2048)}`,
  ])("%j is refused with a reason", async (url) => {
    expect((await check(url))?.reason).toMatch(/^(must|the address)/);
  });

  test("may be http and private in development", async () => {
    expect(await checkWebhookUrl("http://127.0.0.1:8080/hook", { dev: true })).toBeNull();
    expect(await checkWebhookUrl("https://localhost/hook", { dev: true })).toBeNull();
    expect(await checkWebhookUrl("http://user@localhost/hook", { dev: true })).not.toBeNull();
  });

  test("is checked with the system's resolver", async () => {
    expect((await checkWebhookUrl("https://localhost/hook", { dev: false }))?.reason).toMatch(/loopback|not global/);
  });
});

describe("a connection", () => {
  const connect = (connector: buildConnector.connector, hostname: string, port: number) =>
    new Promise<Error | null>((done) => {
      connector({ hostname, host: hostname, protocol: "http:", port: String(port) }, (...[error, socket]) => {
        socket?.destroy();
        done(error);
      });
    });
  async function withServer<T>(run: (port: number, accepted: () => number) => Promise<T>): Promise<T> {
    let accepted = 0;
    const server = createServer((socket) => {
      accepted += 1;
      socket.on("error", () => {}).resume();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    try {
      return await run((server.address() as AddressInfo).port, () => accepted);
    } finally {
      await new Promise((done) => server.close(done));
    }
  }

  test.each(["127.0.0.1", "[::1]", "::1", "[::ffff:127.0.0.1]"])("to the literal %s is never opened", (host) =>
    withServer(async (port, accepted) => {
      const error = await connect(guardConnector(buildConnector({ lookup: guardedLookup() })), host, port);
      expect(error).toBeInstanceOf(AddressRefused);
      expect(accepted()).toBe(0);
    }),
  );

  test.each([[["127.0.0.1"]], [["93.184.216.34", "127.0.0.1"]], [["::1"]]])(
    "to a name of %j is never opened",
    (addresses) =>
      withServer(async (port, accepted) => {
        const lookup = guardedLookup({ resolve: async () => addresses });
        const error = await connect(guardConnector(buildConnector({ lookup })), "rebind.example", port);
        expect(error).toBeInstanceOf(AddressRefused);
        expect(accepted()).toBe(0);
      }),
  );

  test("that reached a refused address nevertheless is closed before a request", () =>
    withServer(async (port) => {
      const lookup: typeof guardedLookup = () => (_host, options, callback) =>
        options.all ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);
      const error = await connect(guardConnector(buildConnector({ lookup: lookup() })), "rebind.example", port);
      expect(error).toBeInstanceOf(AddressRefused);
    }));
});

describe("an upstream's addresses", () => {
  const resolve = async (host: string) =>
    host === "up.example"
      ? ["93.184.216.34"]
      : host === "in.example"
        ? ["10.0.0.1"]
        : Promise.reject(new Error("ENOTFOUND"));

  test("are public ones unless the operator configured it", async () => {
    expect(await resolveUpstream("up.example", { exempt: false, owner: "org1", resolve })).toEqual(["93.184.216.34"]);
    expect(await resolveUpstream("in.example", { exempt: false, owner: "org1", resolve })).toBeNull();
    expect(await resolveUpstream("in.example", { exempt: true, owner: "org1", resolve })).toEqual(["10.0.0.1"]);
    expect(await resolveUpstream("[::1]", { exempt: true, owner: "org1", resolve })).toEqual(["::1"]);
    expect(await resolveUpstream("::1", { exempt: false, owner: "org1", resolve })).toBeNull();
  });

  test("are empty when the name does not resolve", async () => {
    expect(await resolveUpstream("unknown.example", { exempt: true, owner: "org1", resolve })).toEqual([]);
  });
});
