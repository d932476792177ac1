// Limits of one organisation: concurrent streams, their total bitrate, and publish requests; its own limits
// and those of the service, by both protocols. An organisation at its limit does not affect another.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createOrganisationLimiter, type OwnLimits } from "../../ts/publish/limits/organisation-limiter.ts";
import { openGateway } from "../support/gateway.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../support/publishing.ts";
import { expectProblem, openWhipGateway, TO_STREAM } from "../support/whip-gateway.ts";

const OTHERS = ["Ab1Cd-00002", "Ab1Cd-00003", "Ab1Cd-00004"] as const;
const STRANGER = "Zz9Zz-00001";

let stage: Stage;
afterEach(() => stage?.close());

async function open(own: Partial<OwnLimits>, env: Readonly<Record<string, string>> = {}): Promise<void> {
  stage = await openStage({ webhook: null, ca: null, env });
  await stage.db
    .updateTable("organisation")
    .set({ updated_at: 0, ...own })
    .execute();
  for (const name of OTHERS) await addStream(stage.db, name, "created");
  const stranger = { id: "org2", hash: "Zz9Zz", name: "Another", plan: "paid" as const, enabled: 1, webhook: null };
  await stage.db
    .insertInto("organisation")
    .values({ ...stranger, created_at: 1, updated_at: 1 })
    .execute();
  await addStream(stage.db, STRANGER, "created", "org2");
}

const refused = (description: string) => expect.objectContaining({ command: "deny", code: "denied", description });
const TOO_MANY = refused("This organisation has reached its limit of live streams");
const TOO_MUCH = refused("The live streams of this organisation have reached its bitrate limit");
const TOO_FAST = refused("Too many streams of this organisation are starting at once; try again in a moment");

describe("concurrent live streams", () => {
  test("are counted from the request on, and an ended one makes room", async () => {
    await open({ max_streams: 2 });
    const [first, second, third] = await Promise.all([STREAM, OTHERS[0], OTHERS[1]].map((name) => stage.request(name)));
    expect([first, second, third].filter((each) => each?.command === "allow")).toHaveLength(2);
    expect([first, second, third]).toContainEqual(TOO_MANY);
    await stage.allowed(STRANGER);
    const allowed = [first, second].find((each) => each?.command === "allow");
    if (allowed?.command !== "allow") throw new Error("one of the first two runs");
    stage.end(allowed.clientId);
    await stage.allowed(OTHERS[2]);
  });

  test("do not include a broadcaster that comes back to a name that is still live", async () => {
    await open({ max_streams: 1 });
    const lost = await stage.allowed(STREAM);
    stage.media.measure(lost, { silentMs: 6_000 });
    const again = stage.ask(STREAM);
    await until(() => stage.media.commands.some((each) => each.command === "end" && each.clientId === lost));
    stage.end(lost, "replaced");
    expect(await stage.answered(again)).toMatchObject({ command: "allow" });
  });

  test("on another node count a publish and its backup once", async () => {
    await open({ max_streams: 2 });
    const [limited] = await stage.db.selectFrom("organisation").selectAll().where("id", "=", "org1").execute();
    if (limited === undefined) throw new Error("there is an organisation");
    const row = { organisation_id: "org1", stream_id: `stream ${OTHERS[0]}`, app: "live", address: "203.0.113.9" };
    const since = { state: "live" as const, asked_at: 1, accepted_at: 1, bytes_in: 0, bytes_out: 0, epoch: 99 };
    await stage.db
      .insertInto("publish")
      .values([0, 1].map((backup) => ({ client_id: 900 + backup, name: OTHERS[0], backup, ...row, ...since })))
      .execute();
    let here = 0;
    const limiter = createOrganisationLimiter({
      ...{
        db: stage.db,
        member: { epoch: 1 },
        rivals: {},
        clock: { now: () => stage.clock.ms },
        ingestKbpsOf: () => null,
        settings: {},
      },
      publishes: { countOf: () => here, running: () => [] },
    });
    const decided = async () => (await limiter({ ...limited, organisation_id: "org1" }, STREAM))();
    expect(await decided()).toBeNull();
    here = 1;
    expect(await decided()).toMatchObject({ cause: "too_many_streams" });
  });

  test("are limited by the service if the organisation has no limit of its own, and unlimited with 0", async () => {
    await open({}, { HEADGATE_LIMITS_ORGANISATION_STREAMS: "1" });
    await stage.allowed(STREAM);
    expect(await stage.request(OTHERS[0])).toEqual(TOO_MANY);
    await stage.db.updateTable("organisation").set({ max_streams: 0 }).where("id", "=", "org1").execute();
    await stage.allowed(OTHERS[0]);
  });
});

describe("the total bitrate", () => {
  test("is the measured one, and a typical stream's where nothing is measured yet", async () => {
    await open({ max_ingest_kbps: 5_000 });
    await stage.allowed(STREAM);
    await stage.allowed(OTHERS[0]);
    expect(await stage.request(OTHERS[1])).toEqual(TOO_MUCH); // twice 2,500
    await stage.allowed(STRANGER);
    const { running } = stage.publishing;
    stage.service.measurements.addPoints();
    stage.clock.ms += 5_000;
    for (const { clientId } of running()) stage.media.measure(clientId, { bytesIn: 625_000 }); // 1,000 kbit/s
    await stage.allowed(OTHERS[1]);
  });
});

describe("publish requests per second", () => {
  test("may come in bursts of three seconds' worth, and a refusal says when to retry", async () => {
    await open({ max_setups_per_second: 1 });
    for (const name of [STREAM, OTHERS[0], OTHERS[1]]) stage.end(await stage.allowed(name));
    expect(await stage.request(OTHERS[2])).toEqual(TOO_FAST);
    await stage.allowed(STRANGER);
    stage.clock.ms += 1_000;
    await stage.allowed(OTHERS[2]);
  });
});

describe("by WHIP", () => {
  let gateway: Awaited<ReturnType<typeof openWhipGateway>>;
  beforeEach(async () => {
    gateway = await openWhipGateway();
  });
  afterEach(() => gateway.close());

  test("too many streams are answered 403, and the customer is not asked", async () => {
    await addStream(gateway.db, OTHERS[0], "created");
    await gateway.db.updateTable("organisation").set({ max_streams: 1 }).execute();
    await gateway.opened();
    const asked = gateway.customer.requests.length;
    const answer = await gateway.offer(TO_STREAM.replace(STREAM, OTHERS[0]));
    const detail = "This organisation has reached its limit of live streams";
    expectProblem(answer, 403, "too_many_streams", "Too many live streams", detail);
    expect(gateway.customer.requests).toHaveLength(asked);
  });

  test("too many requests are answered 429 with Retry-After", async () => {
    await gateway.db.updateTable("organisation").set({ max_setups_per_second: 1 }).execute();
    for (let publish = 0; publish < 3; publish += 1) gateway.end((await gateway.opened()).clientId);
    const answer = await gateway.offer(TO_STREAM);
    const detail = "Too many streams of this organisation are starting at once; try again in a moment";
    expectProblem(answer, 429, "too_many_setups", "Too many publishes are starting at once", detail);
    expect(answer.headers.get("retry-after")).toBe("1");
  });
});

test("an organisation sees its own limits and those of the service", async () => {
  const gateway = await openGateway({ HEADGATE_LIMITS_ORGANISATION_STREAMS: "20" });
  try {
    const limits = async () => ((await gateway.call("GET", "/organisation")).body as { limits: object }).limits;
    expect(await limits()).toEqual({ streams: 20, ingest_kbps: 0, setups_per_second: 0 });
    await gateway.db.updateTable("organisation").set({ max_streams: 5, max_ingest_kbps: 30_000 }).execute();
    expect(await limits()).toEqual({ streams: 5, ingest_kbps: 30_000, setups_per_second: 0 });
  } finally {
    await gateway.close();
  }
});
