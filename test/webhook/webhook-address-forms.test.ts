// R17: more than 120 ways to write an internal address, as webhook and as stream_url, and a resolver that
// changes its answers. A listener on loopback must never be connected to.
import { createServer, type Server } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkWebhookUrl, resolveUpstream } from "../../ts/publish/addresses/address-guard.ts";
import { createWebhook, type Webhook } from "../../ts/publish/webhook/call.ts";
import { startCustomer } from "../support/customer.ts";
import { startRedirectTarget } from "../support/redirects.ts";

/** Hosts that mean loopback or another internal address, or that some parser reads so. */
const HOSTS = [
  // Every way to write 127.0.0.1 in IPv4.
  ...["127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.00.00.01", "127.000.000.001", "2130706433"],
  ...["0x7f000001", "0x7F.0.0.1", "0x7f.1", "0x7f.0x0.0x0.0x1", "017700000001", "0177.0.0.1", "0177.0.0.01", "00177.1"],
  ...["0x00000000007f000001", "127.0.0.0x1", "127.0x1", "127.8.8.8", "127.255.255.254", "127.0.0.2", "%31%32%37.0.0.1"],
  ...["127%2e0%2e0%2e1", "①②⑦.⓪.⓪.①", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "１２７.0.0.1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏"],
  // The unspecified and broadcast addresses.
  ...["0", "0.0.0.0", "0x0", "00", "0.0", "0.1.2.3", "255.255.255.255", "4294967295", "0.0.0.1"],
  // Private, shared, link-local, metadata, multicast, reserved.
  ...[
    "10.0.0.1",
    "10.1",
    "0xa000001",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
  ],
  ...["100.64.0.1", "100.127.255.255", "100.100.100.200", "169.254.169.254", "169.254.0.1", "2852039166", "0xa9fea9fe"],
  ...["0251.0376.0251.0376", "169.16689662", "168.63.129.16", "192.0.0.192", "192.0.0.170", "198.18.0.1", "224.0.0.1"],
  ...["239.255.255.250", "240.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"],
  // IPv6: loopback, unspecified, mapped, compatible, NAT64, 6to4, Teredo, ULA, link-local, multicast, documentation.
  ...[
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::]",
    "[0::0]",
    "[::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
  ],
  ...[
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:0:0]",
  ],
  ...[
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
  ],
  ...["[2002:7f00:1::]", "[2002:a00:1::1]", "[2002:a9fe:a9fe::]", "[2001::1]", "[2001:0:7f00:1::]", "[2001:db8::1]"],
  ...["[2001:0000:4136:e378:8000:63bf:3fff:fdd2]", "[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fdff:ffff::1]"],
  ...[
    "[fe80::1]",
    "[fec0::1]",
    "[febf::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[100::1]",
    "[5f00::1]",
    "[3fff::1]",
    "[4000::1]",
  ],
  // Names that mean this machine, and ways to hide the host.
  ...[
    "localhost",
    "LOCALHOST",
    "localhost.",
    "LocalHost.",
    "ⓛocalhost",
    "loc%61lhost",
    "user@127.0.0.1",
    "a:b@127.0.0.1",
  ],
  ...["@127.0.0.1", "public.example@127.0.0.1", "public.example:80@127.0.0.1", "127.0.0.1\\@public.example"],
  ...[
    "public.example\\@127.0.0.1",
    "127.0.0.1#@public.example",
    "127.0.0.1?@public.example",
    "public.example\t@127.0.0.1",
  ],
  ...["127.0.0.1\r\n", "[::1%25lo]", "[::1]%00", "127.0.0.1%00.public.example", "\u0000127.0.0.1", "127.0.0.1\u00ad"],
] as const;

let servers: Server[];
let accepted = 0;
let port: number;
let webhook: Webhook;
/** The resolver's answer for every name but loopback's own; tests change it. */
let addresses: () => readonly string[] = () => ["127.0.0.1"];
const resolve = async () => addresses();

beforeAll(async () => {
  const listen = async (host: string, at: number) => {
    const server = createServer((socket) => {
      accepted += 1;
      socket.destroy();
    });
    await new Promise<void>((done, fail) => server.once("error", fail).listen(at, host, done));
    return server;
  };
  const first = await listen("127.0.0.1", 0);
  const address = first.address();
  port = typeof address === "object" ? (address?.port ?? 0) : 0;
  // On a machine without IPv6 there is nothing to connect to.
  servers = [
    first,
    ...(await listen("::1", port).then(
      (server) => [server],
      () => [],
    )),
  ];
  webhook = createWebhook({
    webhookCa: null,
    dev: false,
    log: pino({ level: "silent" }),
    clock: { now: () => 0 },
    resolve,
  });
});
afterAll(async () => {
  await webhook.close();
  for (const server of servers) server.close();
});

/** Calls the URL as if it had been saved. */
async function post(url: string, by = webhook) {
  return await by.post({
    organisationId: "org",
    url,
    id: "msg",
    body: Buffer.from("call=publish"),
    keys: [],
    deadlineMs: 2_000,
    retryConnection: true,
    event: { call: "publish", clientId: 1, name: "n", attempt: 1 },
  });
}

test("there are more than 120 forms", () => {
  expect(new Set(HOSTS).size).toBeGreaterThanOrEqual(120);
  expect(HOSTS).toHaveLength(new Set(HOSTS).size);
});

describe.each(HOSTS)("%j", (host) => {
  test("is not saved as a webhook, and not called if it had been", async () => {
    const url = `https://${host}:${port}/hook`;
    expect(await checkWebhookUrl(url, { dev: false, resolve })).not.toBeNull();
    if (URL.canParse(url)) expect(await post(url)).toMatchObject({ outcome: "unreachable" });
    expect(accepted).toBe(0);
  });

  test("is not dialled as a stream_url", async () => {
    const dialled = await resolveUpstream(host, { exempt: false, owner: "org1", resolve: async () => ["127.0.0.1"] });
    expect(dialled).toBeNull();
    expect(accepted).toBe(0);
  });
});

test.each([301, 302, 303, 307, 308])("a redirect %i to it is not followed", async (status) => {
  // The redirect must come from somewhere: this customer's address is allowed, and with it the listener's.
  const customer = await startCustomer();
  const target = await startRedirectTarget();
  const trusting = createWebhook({
    webhookCa: customer.ca,
    dev: true,
    log: pino({ level: "silent" }),
    clock: { now: () => 0 },
  });
  for (const location of [target.url, `https://127.0.0.1:${port}/`, `//localhost:${port}/`, `http://[::1]:${port}/`]) {
    customer.answer({ status, headers: { location } });
    expect(await post(customer.url, trusting)).toMatchObject({ outcome: "answered", status });
  }
  expect(customer.requests).toHaveLength(4);
  expect(target.connections()).toBe(0);
  expect(accepted).toBe(0);
  await trusting.close();
  await target.close();
  await customer.close();
});

test("no port makes the address acceptable", async () => {
  for (const at of [22, 80, 443, 6_379, 65_535, port]) {
    expect(await checkWebhookUrl(`https://127.0.0.1:${at}/`, { dev: false })).not.toBeNull();
  }
  for (const at of ["0", "65536", "-1", "80a", " 80"]) {
    expect(await checkWebhookUrl(`https://public.example:${at}/`, { dev: false, resolve })).not.toBeNull();
  }
});

test("a resolver that answers differently at save and at the call causes no connection, in a thousand attempts", async () => {
  const inside = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254"];
  let refused = 0;
  for (let turn = 0; turn < 1_000; turn += 1) {
    const url = `https://rebind-${turn % 10}.example:${port}/hook`;
    addresses = () => ["93.184.216.34"];
    expect(await checkWebhookUrl(url, { dev: false, resolve })).toBeNull();
    const second = inside[turn % inside.length] ?? "";
    addresses = () => (turn % 2 === 0 ? [second] : ["93.184.216.34", second]);
    const answer = await post(url);
    if (answer.outcome === "unreachable" && answer.cause === "address_refused") refused += 1;
  }
  expect(refused).toBe(1_000);
  expect(accepted).toBe(0);
}, 120_000);
