// What broadcasters and players experience at a node without room, by either protocol, and how a publish
// reserves a place.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startCustomer } from "../support/customer.ts";
import { GivenCapacity, WAIT_S } from "../support/given-capacity.ts";
import { openStage, STREAM, type Stage, until } from "../support/publishing.ts";
import { expectProblem, openWhipGateway, TO_STREAM, type WhipGateway } from "../support/whip-gateway.ts";

const WORDS = "This server is full; try again in a moment";

describe("by WHIP", () => {
  let capacity: GivenCapacity;
  let gateway: WhipGateway;
  beforeEach(async () => {
    capacity = new GivenCapacity();
    gateway = await openWhipGateway({ capacity });
  });
  afterEach(() => gateway.close());

  test("an offer to a full node is answered 503 with Retry-After, and no customer is asked", async () => {
    capacity.full = "a media worker is busy for 90 % of the time";
    const answer = await gateway.offer(TO_STREAM);
    expectProblem(answer, 503, "full", "This server is full", WORDS);
    expect(answer.headers.get("retry-after")).toBe(String(WAIT_S));
    expect(gateway.customer.requests).toEqual([]);
    expect(capacity.refused).toBe(1);
    // Which resource is short is only for the operator.
    expect(answer.body).not.toContain("worker");
  });

  test("running publishes continue, and new ones are accepted again once there is room", async () => {
    const { clientId, session } = await gateway.opened();
    capacity.full = "280 of 300 MB of memory are used";
    expect((await gateway.call("OPTIONS", session)).status).toBe(200);
    expect((await gateway.call("DELETE", session)).status).toBe(200);
    gateway.end(clientId);
    expect((await gateway.offer(TO_STREAM)).status).toBe(503);
    capacity.full = null;
    await gateway.opened();
  });

  test("refused offers of a crowd are not logged one by one, and the first ones with their stream", async () => {
    capacity.full = "a media worker is 40 ms late";
    for (let offer = 0; offer < 30; offer += 1) await gateway.offer(TO_STREAM);
    const lines = () => gateway.log().match(/"cause":"full".*"msg":"publish denied"/g) ?? [];
    await until(() => lines().length === 10);
    expect(lines().every((line) => line.includes(`"stream":"stream ${STREAM}"`))).toBe(true);
    gateway.clock.ms += 60_000;
    await gateway.offer(TO_STREAM);
    await until(() => lines().length === 11);
    expect(gateway.log()).toContain('"cause":"full","omitted":20');
    expect(gateway.log()).not.toContain("request cannot be served now");
  });
});

describe("by RTMP", () => {
  let capacity: GivenCapacity;
  let stage: Stage;
  const customers: Awaited<ReturnType<typeof startCustomer>>[] = [];
  beforeEach(async () => {
    capacity = new GivenCapacity();
    const customer = await startCustomer();
    customers.push(customer);
    stage = await openStage({ webhook: customer.url, ca: customer.ca, capacity });
  });
  afterEach(async () => {
    await stage.close();
    for (const customer of customers.splice(0)) await customer.close();
  });

  test("a publish is denied with a reason that encoders show, and counted", async () => {
    capacity.full = "220 of 256 file descriptors are open";
    expect(await stage.request(STREAM)).toEqual({ command: "deny", request: 1, code: "denied", description: WORDS });
    expect(customers[0]?.requests).toEqual([]);
    expect(await stage.metrics.registry.metrics()).toContain('headgate_publish_denied_total{cause="full"} 1');
    capacity.full = null;
    await stage.allowed(STREAM);
  });

  test("a new player of a running publish is refused too, since it would take capacity from existing ones", async () => {
    const clientId = await stage.allowed(STREAM);
    const play = (request: number) =>
      stage.publishing.handle({
        ...{ kind: "play_requested", request, app: "live", name: Buffer.from(STREAM), arguments: null },
        ...{ address: "203.0.113.9", clientId },
      });
    capacity.full = "a media worker is 40 ms late";
    play(7);
    expect(await stage.answered(7)).toMatchObject({ command: "deny", code: "denied", description: WORDS });
    capacity.full = null;
    play(8);
    expect(await stage.answered(8)).toMatchObject({ command: "allow_play" });
  });

  test("a place is reserved before the customer is asked, kept while the publish runs, and released at its end", async () => {
    const customer = customers[0];
    let whileAsked = -1;
    customer?.answer(() => {
      whileAsked = capacity.settingUp.size;
      return { status: 200 };
    });
    const clientId = await stage.allowed(STREAM);
    expect([whileAsked, capacity.settingUp.size, capacity.running.size]).toEqual([1, 0, 1]);
    stage.end(clientId);
    await until(() => capacity.running.size === 0);
    customer?.answer({ status: 403 });
    await stage.request(STREAM);
    expect(capacity.settingUp.size).toBe(0);
    await stage.request("Ab1Cd-00000");
    expect(capacity.settingUp.size).toBe(0);
  });
});
