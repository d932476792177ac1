// Web tokens of several nodes: what one signs every other verifies and shows, whatever happened to the keys.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JSONWebKeySet } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { StoreUnavailable } from "../../ts/errors.ts";
import { openSecretBox } from "../../ts/store/secret-box.ts";
import { loadTokenKeys } from "../../ts/token/keys.ts";
import { revokeStream } from "../../ts/token/revocations.ts";
import { rotateTokenKeys } from "../../ts/token/rotation.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { databasesWithTables } from "../support/stores.ts";
import { type Node, type Nodes, openNodes } from "../support/two-nodes.ts";

const DAY_MS = 86_400_000;

let server: PostgresServer;
let newDatabase: () => Promise<string>;
let nodes: Nodes;

beforeAll(async () => {
  server = await startPostgres();
  newDatabase = await databasesWithTables(server);
});
afterAll(() => server.close());
beforeEach(async () => {
  nodes = await openNodes(await newDatabase());
});
afterEach(() => nodes.close());

const SUBJECT = { streamname: "Ab1Cd-x", ingesturl: "rtmp://in.example/live", exp: null, nbf: null, org: null };
const issue = ({ service }: Node) => service.tokens.issue(SUBJECT).then(({ token }) => token);
const kidOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid as string;
const shown = async (node: Node) =>
  ((await node.call("GET", "/.well-known/jwks.json")).body as JSONWebKeySet).keys.map(({ kid }) => kid);
const keysOf = ({ db }: Node) => db.selectFrom("token_key").select(["kid", "alg", "state"]).orderBy("kid").execute();
const rotation = { alg: "ES256", rotateDays: 0, when: "at_once" } as const;

test("a token is verified by a node that has not seen its key, and the key is published there immediately", async () => {
  const [one, other] = [await nodes.add(), await nodes.add()];
  for (const act of ["rotated", "rotated once more"]) {
    await rotateTokenKeys(one.db, openSecretBox(nodes.dataDir), { ...rotation, now: nodes.clock.ms });
    await one.service.tokenKeys.reload();
    const token = await issue(one);
    expect([act, await shown(other)]).toEqual([act, expect.arrayContaining([kidOf(token)])]);
    await rotateTokenKeys(one.db, openSecretBox(nodes.dataDir), { ...rotation, now: nodes.clock.ms });
    await one.service.tokenKeys.reload();
    await expect(other.service.tokens.verify(await issue(one))).resolves.toMatchObject({ streamname: "Ab1Cd-x" });
  }
});

test("a token that one node issues just after another has revoked those of the stream is valid everywhere", async () => {
  const [one, other] = [await nodes.add(), await nodes.add()];
  for (let round = 0; round < 2; round += 1) {
    const before = await issue(other);
    await revokeStream(one.db, "Ab1Cd-x", nodes.clock.ms);
    const after = await issue(other);
    for (const { service } of [one, other]) {
      await service.tokens.issue({ ...SUBJECT, streamname: "Ab1Cd-y" }); // reads the revocations
      await expect(service.tokens.verify(before)).rejects.toThrow("jwt revoked");
      await expect(service.tokens.verify(after)).resolves.toMatchObject({ streamname: "Ab1Cd-x" });
    }
  }
});

test("unknown keys cause at most one read of the store per second, and every caller gets an answer", async () => {
  const node = await nodes.add();
  const [head = "", ...rest] = (await issue(node)).split(".");
  const header = JSON.parse(Buffer.from(head, "base64url").toString());
  const forged = (kid: number) =>
    [Buffer.from(JSON.stringify({ ...header, kid: `${kid}`.padStart(43, "k") })).toString("base64url"), ...rest].join(
      ".",
    );
  let reads = 0;
  const select = node.db.selectFrom.bind(node.db);
  node.db.selectFrom = ((table: "token_key") => {
    if (table === "token_key") reads += 1;
    return select(table);
  }) as typeof node.db.selectFrom;
  const refusals = Array.from({ length: 50 }, (_, kid) => node.service.tokens.verify(forged(kid)));
  for (const refusal of await Promise.allSettled(refusals)) {
    expect(refusal).toMatchObject({ status: "rejected", reason: { fault: "invalid signature" } });
  }
  expect(reads).toBeLessThanOrEqual(2);
});

test("nodes configured for different algorithms agree: the one that started last decides", async () => {
  const former = await nodes.add({ HEADGATE_TOKEN_ROTATE_DAYS: "90" });
  const latter = await nodes.add({ HEADGATE_TOKEN_ALG: "EdDSA", HEADGATE_TOKEN_ROTATE_DAYS: "90" });
  const before = await keysOf(latter);
  expect(before.filter(({ state }) => state !== "retired").map(({ alg }) => alg)).toEqual(["EdDSA", "EdDSA"]);
  for (let hour = 0; hour < 3; hour += 1) {
    nodes.clock.ms += 3_600_000;
    for (const node of [former, latter]) await node.service.tokenKeys.upkeep(nodes.clock.ms);
  }
  expect(await keysOf(latter)).toEqual(before);
  nodes.clock.ms += 90 * DAY_MS;
  await former.service.tokenKeys.upkeep(nodes.clock.ms);
  const [one, other] = [await issue(former), await issue(latter)];
  for (const node of [former, latter]) for (const token of [one, other]) await node.service.tokens.verify(token);
  expect((await keysOf(latter)).find(({ state }) => state === "active")?.alg).toBe("EdDSA");
});

test("several nodes that replace old keys at the same moment replace them once", async () => {
  const all = [await nodes.add(), await nodes.add(), await nodes.add()];
  nodes.clock.ms += 400 * DAY_MS;
  await Promise.all(all.map(({ service }) => service.tokenKeys.upkeep(nodes.clock.ms)));
  const states = (await keysOf(all[0] as Node)).map(({ state }) => state).sort();
  expect(states).toEqual(["active", "next", "retired"]);
});

test("a node with another key file is refused, whatever is due, and changes nothing", async () => {
  const node = await nodes.add();
  const before = await keysOf(node);
  const another = mkdtempSync(join(tmpdir(), "headgate-another-key-"));
  const box = openSecretBox(another);
  nodes.clock.ms += 400 * DAY_MS;
  const advice = /another-key.*headgate\.key is not the key this store was made with; put the right one back/;
  for (const env of [{}, { HEADGATE_TOKEN_ALG: "EdDSA" }, { HEADGATE_TOKEN_ROTATE_DAYS: "1" }]) {
    const refusal = await nodes.add(env, another).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(String(refusal)).toMatch(advice);
  }
  const now = nodes.clock.ms;
  await expect(rotateTokenKeys(node.db, box, { ...rotation, now })).rejects.toThrow(advice);
  await expect(loadTokenKeys(node.db, box, { alg: "ES256", now, algorithm: "active" })).rejects.toThrow(advice);
  expect(await keysOf(node)).toEqual(before);
  rmSync(another, { recursive: true });
});
