// The WHIP endpoint's protection and configuration of clients: limits per address and in total, addresses
// behind proxies, ICE servers on the wire (docs/settings.md, W5, P6).
import { createHmac } from "node:crypto";
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { listen } from "../../ts/listen/http-port.ts";
import { addStream, STREAM } from "../support/publishing.ts";
import {
  NO_SESSION,
  OFFER,
  openWhipGateway,
  TO_OURSELVES,
  TO_STREAM,
  type WhipGateway,
} from "../support/whip-gateway.ts";

let gateway: WhipGateway;

async function open(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await openWhipGateway({ env });
}
afterEach(() => gateway.close());

const statusesOf = async (count: number, call: () => Promise<{ readonly status: number }>) => {
  const statuses: number[] = [];
  for (let n = 0; n < count; n += 1) statuses.push((await call()).status);
  return statuses;
};

describe("requests", () => {
  test("of one address are answered 429 with Retry-After beyond its burst, others' are not", async () => {
    await open({ HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "2" });
    const remove = (peer: string) => gateway.call("DELETE", NO_SESSION, { peer });
    expect(await statusesOf(7, () => remove("203.0.113.7"))).toStrictEqual([404, 404, 404, 404, 404, 404, 429]);
    const refused = await remove("203.0.113.7");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, code: "too_many_requests" });
    expect((await remove("203.0.113.8")).status).toBe(404);
    gateway.clock.ms += 1_000;
    expect(await statusesOf(3, () => remove("203.0.113.7"))).toStrictEqual([404, 404, 429]);
  });

  test("to end a session are never limited", async () => {
    await open({ HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "1" });
    const { session } = await gateway.opened();
    await statusesOf(6, () => gateway.call("DELETE", NO_SESSION));
    expect((await gateway.call("DELETE", NO_SESSION)).status).toBe(429);
    expect((await gateway.call("DELETE", session)).status).toBe(200);
  });

  test("of one IPv6 network count as one address's", async () => {
    await open({ HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "1" });
    const peers = ["2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002::9", "2001:db8:1:2::a"];
    const answers = await Promise.all(peers.map((peer) => gateway.call("DELETE", NO_SESSION, { peer })));
    expect(answers.map(({ status }) => status).sort()).toStrictEqual([404, 404, 404, 429]);
    expect((await gateway.call("DELETE", NO_SESSION, { peer: "2001:db8:1:3::1" })).status).toBe(404);
  });

  test("for sessions are answered 503 with Retry-After beyond the total burst", async () => {
    await open({ HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "1" });
    let peer = 0;
    const offer = () => {
      peer += 1;
      return gateway.offer("", { peer: `203.0.113.${peer}` });
    };
    expect(await statusesOf(4, offer)).toStrictEqual([400, 400, 400, 503]);
    expect((await offer()).headers.get("retry-after")).toBe("1");
  });

  test("are not limited when the operator sets 0", async () => {
    await open({ HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0" });
    expect(new Set(await statusesOf(200, () => gateway.call("DELETE", NO_SESSION)))).toStrictEqual(new Set([404]));
  });
});

describe("30 starts at once from one address", () => {
  test("succeed, with five fragments each", async () => {
    // Thirty TLS handshakes with the customer take their time on a busy machine.
    await open({ HEADGATE_WEBHOOK_DEADLINE_MS: "10000" });
    const names = Array.from({ length: 30 }, (_, n) => `Ab1Cd-studio${n}`);
    for (const name of names) await addStream(gateway.db, name, "created");
    const peer = "203.0.113.7";
    const starts = await Promise.all(
      names.map((name) => gateway.offer(`${TO_OURSELVES}&stream_name=${name}`, { peer })),
    );
    expect(starts.map(({ status }) => status)).toStrictEqual(names.map(() => 201));
    const known = starts.map(({ headers }) => new URL(headers.get("location") ?? "").pathname);
    const patches = await Promise.all(
      known.flatMap((path) => Array.from({ length: 5 }, () => gateway.call("PATCH", path, { peer }))),
    );
    expect(patches.map(({ status }) => status)).not.toContain(429);
  });
});

describe("sessions that are not connected", () => {
  async function offerOf(n: number, peer = "203.0.113.7") {
    const name = n === 0 ? STREAM : `Ab1Cd-more${n}`;
    if (n > 0) await addStream(gateway.db, name, "created");
    return gateway.offer(`${TO_OURSELVES}&stream_name=${name}`, { peer });
  }

  test("are limited per address; connected and ended ones make room", async () => {
    await open({ HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "2" });
    expect((await offerOf(0)).status).toBe(201);
    expect((await offerOf(1)).status).toBe(201);
    const refused = await offerOf(2);
    expect([refused.status, refused.headers.get("retry-after")]).toStrictEqual([429, "10"]);
    expect(gateway.customer.requests).toHaveLength(2);
    expect((await offerOf(3, "203.0.113.8")).status).toBe(201);
    const [first, second] = gateway.openings();
    gateway.media.connected.add(first?.clientId ?? -1);
    expect((await offerOf(4)).status).toBe(201);
    expect((await offerOf(5)).status).toBe(429);
    gateway.end(second?.clientId ?? -1);
    expect((await offerOf(6)).status).toBe(201);
  });

  test("are limited in total", async () => {
    await open({ HEADGATE_LIMITS_WHIP_HALF_OPEN: "2" });
    expect((await offerOf(0, "203.0.113.1")).status).toBe(201);
    expect((await offerOf(1, "203.0.113.2")).status).toBe(201);
    expect((await offerOf(2, "203.0.113.3")).status).toBe(503);
    gateway.media.connected.add(gateway.openings()[0]?.clientId ?? -1);
    gateway.clock.ms += 300;
    expect((await offerOf(3, "203.0.113.3")).status).toBe(201);
  });

  test("that the customer denied are not counted", async () => {
    await open({ HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "1" });
    gateway.customer.answer({ status: 403 });
    expect(await statusesOf(3, () => offerOf(0))).toStrictEqual([403, 403, 403]);
  });
});

describe("behind proxies", () => {
  const PROXIES = { HEADGATE_TRUSTED_PROXIES: "10.0.0.0/8,2001:db8:ffff::1" };

  test.each<[what: string, peer: string, forwarded: string | null, client: string]>([
    ["a stranger's header is not believed", "203.0.113.7", "198.51.100.1", "203.0.113.7"],
    ["the proxy's is", "10.1.2.3", "198.51.100.1", "198.51.100.1"],
    ["what the client wrote before it is not", "10.1.2.3", "6.6.6.6, 198.51.100.1", "198.51.100.1"],
    ["proxies behind proxies are passed over", "10.1.2.3", "198.51.100.1, 10.9.9.9", "198.51.100.1"],
    ["ports are left out", "10.1.2.3", "198.51.100.1:4711", "198.51.100.1"],
    ["IPv6 as well", "2001:db8:ffff::1", "[2001:db8::5]:4711", "2001:db8::5"],
    ["nonsense ends the search", "10.1.2.3", "198.51.100.1, unknown", "10.1.2.3"],
    ["without a header it is the peer", "10.1.2.3", null, "10.1.2.3"],
  ])("%s", async (_, peer, forwarded, client) => {
    await open(PROXIES);
    const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded };
    const { clientId } = await gateway.opened(TO_STREAM, { peer, headers });
    const [publish] = gateway.customer.requests;
    expect(new URLSearchParams(publish?.body).get("addr")).toBe(client);
    expect(clientId).toBeGreaterThan(0);
  });
});

describe("ICE servers", () => {
  const SERVERS = "stun:stun.example:3478,turn:turn.example?transport=udp,turns:turn.example:443?transport=tcp";

  test("are listed one per header line, with credentials for an hour", async () => {
    await open({ HEADGATE_ICE_SERVERS: SERVERS, HEADGATE_ICE_TURN_SECRET: "shared" });
    const server = await listen(gateway.fetch, { name: "test", host: "127.0.0.1", port: 0 });
    try {
      const { status, lines } = await post(server.port, `/p/webrtc?${TO_STREAM}`);
      expect(status).toBe(201);
      const username = `${Math.floor(gateway.clock.ms / 1_000) + 3_600}:${gateway.openings()[0]?.clientId}`;
      const credential = createHmac("sha1", "shared").update(username).digest("base64");
      const turn = `rel="ice-server"; username="${username}"; credential="${credential}"`;
      expect(lines.filter(([name]) => name === "link").map(([, value]) => value)).toStrictEqual([
        '<stun:stun.example:3478>; rel="ice-server"',
        `<turn:turn.example?transport=udp>; ${turn}`,
        `<turns:turn.example:443?transport=tcp>; ${turn}`,
      ]);
    } finally {
      await server.stop();
    }
  });

  test("are not listed in preflights and refusals", async () => {
    await open({ HEADGATE_ICE_SERVERS: "stun:stun.example" });
    expect((await gateway.call("OPTIONS", `/p/webrtc?${TO_STREAM}`)).headers.get("link")).toBeNull();
    expect((await gateway.offer("")).headers.get("link")).toBeNull();
    expect((await gateway.offer(TO_STREAM)).headers.get("link")).toBe('<stun:stun.example>; rel="ice-server"');
  });
});

/** The header lines as received, names in lower case. */
function post(port: number, path: string): Promise<{ status: number; lines: [string, string][] }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, method: "POST", headers: { "content-type": "application/sdp" } };
    const call = request(options, (response) => {
      const { rawHeaders } = response;
      const lines: [string, string][] = [];
      for (let at = 0; at < rawHeaders.length; at += 2) {
        lines.push([(rawHeaders[at] ?? "").toLowerCase(), rawHeaders[at + 1] ?? ""]);
      }
      response.resume().once("end", () => resolve({ status: response.statusCode ?? 0, lines }));
    });
    call.once("error", reject);
    call.end(OFFER);
  });
}
