// /deployment: what the operator sees of the whole service, and that nobody else does. On both stores
// (vitest.config.ts).
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { selfSigned } from "../../../ts/cli/webhook/self-signed.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { PASSWORD, personOf } from "../../support/inventory.ts";

const ROUTES = ["/deployment", "/deployment/organisation"];
const DAY_MS = 86_400_000;

interface Shown {
  readonly certificates: readonly Readonly<Record<string, unknown>>[];
}

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

async function cookieOf(role: string): Promise<Record<string, string>> {
  const person = personOf(role);
  await gateway.call("POST", "/organisation/user", { body: person });
  const login = await gateway.call("POST", "/login", { key: null, body: { email: person.email, password: PASSWORD } });
  return { cookie: (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
}

test("is for administrators of the first organisation, by key or signed in, and /me says so", async () => {
  const second = await gateway.newOrganisation("Second");
  const body = { role: "administrator", scope_tag: "studio" };
  const scoped = ((await gateway.call("POST", "/organisation/key", { body })).body as { key: string }).key;
  const callers = [
    [{}, true],
    [{ key: null, headers: await cookieOf("administrator") }, true],
    [{ key: gateway.keys.user }, false],
    [{ key: null, headers: await cookieOf("readonly") }, false],
    [{ key: scoped }, false],
    [{ key: second.keys.administrator }, false],
  ] as const;
  for (const [caller, operator] of callers) {
    expect((await gateway.call("GET", "/me", caller)).body).toMatchObject({ operator });
    for (const route of ROUTES) {
      const answer = await gateway.call("GET", route, caller);
      expect([route, answer.status]).toEqual([route, operator ? 200 : 403]);
      if (!operator) expect(answer.body).toMatchObject({ error: { code: 2001, message: "Access denied" } });
    }
  }
  const refused = await gateway.call("GET", "/deployment", { key: second.keys.administrator });
  expect(refused.body).toMatchObject({ error: { userinfo: { required_scope: "deployment" } } });
});

test("is not for an organisation that was created on a machine whose clock is behind", async () => {
  const { clock } = gateway;
  clock.ms -= 120_000;
  const second = await gateway.newOrganisation("Second");
  clock.ms += 120_000;
  for (const route of ROUTES) {
    const answers = [
      await gateway.call("GET", route),
      await gateway.call("GET", route, { key: second.keys.administrator }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 403]);
  }
});

test("contains the nodes, their load, the outbox, the store and the limits in force", async () => {
  gateway = await gateway.restart({ HEADGATE_LIMITS_WHIP_HALF_OPEN: "7" });
  const { db, organisation, clock } = gateway;
  const event = { organisation_id: organisation.id, client_id: 1, url: "https://a.example/", body: "x" };
  const times = { next_attempt_at: clock.ms, created_at: clock.ms };
  await db
    .insertInto("outbox")
    .values({ id: "msg_1", ...event, ...times })
    .execute();
  clock.ms += 5_000;
  const { body } = await gateway.call("GET", "/deployment");
  expect(body).toMatchObject({
    nodes: [
      {
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        started_at: new Date(clock.ms - 5_000).toISOString(),
        uptime_s: 5,
        workers: [{ load: 0 }],
        sessions: { rtmp: 0, whip: 0 },
        players: 0,
        event_readers: 0,
        media: { ports: [8189] },
        udp_buffer: { requested_bytes: 4_194_304, granted_bytes: 4_194_304, kernel_drops: null },
      },
    ],
    cluster: [
      {
        ...{ state: "up", answered: true, epoch: expect.any(Number), version: expect.stringMatching(/^\d+\.\d+/) },
        ...{ publishes: 0, load: 0, last_sign_of_life_age_ms: 0 },
        last_sign_of_life_at: new Date(clock.ms).toISOString(),
      },
    ],
    outbox: { events: 1, oldest_ms: 5_000 },
    store: { kind: "embedded", healthy: true, problem: null },
    certificates: [],
    limits: { "limits.whip_half_open": 7, drain_s: 300 },
  });
});

test("lists organisations with their streams and the bytes of the month, page by page", async () => {
  const { db, organisation, clock } = gateway;
  const second = await gateway.newOrganisation('<b>"Second"</b>');
  const change = { plan: "trial", trial_ends_at: clock.ms - 1 } as const;
  await db.updateTable("organisation").set(change).where("id", "=", second.organisation.id).execute();
  const of = { organisation_id: organisation.id, tags: "[]", created_at: 0, updated_at: 0 };
  for (const [id, state] of [
    ["a", "live"],
    ["b", "created"],
    ["c", "deleted"],
  ] as const) {
    await db
      .insertInto("stream")
      .values({ ...of, id, name: id, state })
      .execute();
  }
  const bytes = { stream_id: "a", organisation_id: organisation.id, bytes_in: 10, bytes_out: 5 };
  for (const at of [clock.ms - DAY_MS, clock.ms, clock.ms + 30 * DAY_MS]) {
    const day = new Date(at).toISOString().slice(0, 10);
    await db
      .insertInto("usage")
      .values({ ...bytes, day })
      .execute();
  }
  const first = await gateway.call("GET", "/deployment/organisation?quantity=1");
  const { hash, id } = organisation;
  const created_at = new Date(clock.ms).toISOString();
  const paid = { plan: "paid", trial_ends_at: null, enabled: true };
  expect(first.body).toEqual([
    { id, hash, name: "First", ...paid, streams: 2, live: 1, bytes_in: 20, bytes_out: 10, created_at },
  ]);
  const cursor = first.headers.get("x-next-cursor");
  const rest = await gateway.call("GET", `/deployment/organisation?quantity=1&cursor=${cursor}`);
  expect(rest.body).toMatchObject([
    { name: '<b>"Second"</b>', plan: "trial", enabled: false, streams: 0, bytes_in: 0 },
  ]);
  expect(rest.headers.get("x-next-cursor")).toBeNull();
});

test("contains a certificate's end of validity, and its faults", async () => {
  const { cert, key } = selfSigned(gateway.clock.ms, 30);
  const [certFile, keyFile] = [join(gateway.dataDir, "cert.pem"), join(gateway.dataDir, "key.pem")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  gateway = await gateway.restart({ HEADGATE_HTTP_TLS_CERT: certFile, HEADGATE_HTTP_TLS_KEY: keyFile });
  const certificates = async () => ((await gateway.call("GET", "/deployment")).body as Shown).certificates;
  const shown = { section: "http", names: expect.stringContaining("DNS:localhost"), days_left: 30, problems: [] };
  const ends_at = new Date(gateway.clock.ms + 30 * DAY_MS).toISOString();
  expect(await certificates()).toMatchObject([{ ...shown, ends_at }]);
  gateway.clock.ms += 31 * DAY_MS;
  const problems = [expect.stringContaining("has expired")];
  expect(await certificates()).toMatchObject([{ days_left: -1, problems }]);
});

test("a capture of a stream whose id the store cannot hold is refused by name", async () => {
  const refused = await gateway.call("POST", "/capture", { body: { stream: "a\0" } });
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 9002, userinfo: { parameter: "stream" } } } });
});
