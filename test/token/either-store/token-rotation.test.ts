// Rotation of token keys without an invalid token in between: next → active → retired → removed (T4).
import type { JSONWebKeySet } from "jose";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSecretBox } from "../../../ts/store/secret-box.ts";
import { forgetTokenKey, type Rotated, type RotationRequest, rotateTokenKeys } from "../../../ts/token/rotation.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

const DAY_MS = 86_400_000;
const SUBJECT = { streamname: "a", ingesturl: "b" };

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway({ HEADGATE_TOKEN_ROTATE_DAYS: "90" });
});
afterEach(() => gateway.close());

async function issue(exp?: number): Promise<string> {
  const { body } = await gateway.call("POST", "/webcaster", {
    body: { ...SUBJECT, ...(exp === undefined ? {} : { exp }) },
  });
  return (body as { data: { token: string } }).data.token;
}
const verify = async (token: string) =>
  (await gateway.call("POST", "/webcaster/verify", { key: null, body: { token } })).status;
const kidOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid as string;
const shown = async () =>
  ((await gateway.call("GET", "/.well-known/jwks.json", { key: null })).body as JSONWebKeySet).keys.map(
    ({ kid }) => kid,
  );
async function rotated(when?: NonNullable<RotationRequest["when"]>): Promise<Rotated> {
  const options = {
    alg: "ES256" as const,
    now: gateway.clock.ms,
    rotateDays: 0,
    ...(when === undefined ? {} : { when }),
  };
  const outcome = await rotateTokenKeys(gateway.db, openSecretBox(gateway.dataDir), options);
  await gateway.tokenKeys.reload();
  return outcome;
}

test("the next key is published before it signs; the retired one verifies as long as its tokens are valid, then is removed", async () => {
  const before = await shown();
  const old = await issue(gateway.clock.ms / 1000 + 365 * 86_400);
  const next = before.find((kid) => kid !== kidOf(old));

  gateway.clock.ms += 90 * DAY_MS;
  await gateway.tokenKeys.upkeep(gateway.clock.ms);
  const fresh = await issue();
  expect(kidOf(fresh)).toBe(next);
  expect([await verify(old), await verify(fresh)]).toEqual([200, 200]);
  expect(await shown()).toHaveLength(3);
  const retired = await gateway.db
    .selectFrom("token_key")
    .selectAll()
    .where("kid", "=", kidOf(old))
    .executeTakeFirstOrThrow();
  expect(retired).toMatchObject({ state: "retired", private_key: "", retired_at: gateway.clock.ms });

  gateway.clock.ms += 274 * DAY_MS;
  await gateway.tokenKeys.upkeep(gateway.clock.ms);
  expect(await verify(old)).toBe(200);
  gateway.clock.ms += 100 * DAY_MS;
  await gateway.tokenKeys.upkeep(gateway.clock.ms);
  expect(await shown()).not.toContain(kidOf(old));
});

test("a young key continues to sign", async () => {
  const kid = kidOf(await issue());
  gateway.clock.ms += 90 * DAY_MS - 1;
  await gateway.tokenKeys.upkeep(gateway.clock.ms);
  expect(kidOf(await issue())).toBe(kid);
});

test("a manual rotation waits until the next key was published for ten minutes, unless told otherwise", async () => {
  const first = kidOf(await issue());
  expect(await rotated("when_shown")).toEqual({ outcome: "too_early", kid: first, at: gateway.clock.ms + 600_000 });
  expect(kidOf(await issue())).toBe(first);
  gateway.clock.ms += 600_000;
  expect(await rotated("when_shown")).toMatchObject({ outcome: "rotated" });
  const second = kidOf(await issue());
  expect(second).not.toBe(first);
  expect(await rotated("at_once")).toMatchObject({ outcome: "rotated" });
  expect(kidOf(await issue())).not.toBe(second);
});

test("a leaked key is deleted: its tokens become invalid, and the active one cannot be deleted", async () => {
  const leaked = await issue();
  expect(await forgetTokenKey(gateway.db, kidOf(leaked))).toBe(false);
  await rotated("at_once");
  expect(await verify(leaked)).toBe(200);
  expect(await forgetTokenKey(gateway.db, kidOf(leaked))).toBe(true);
  await gateway.tokenKeys.reload();
  expect(await verify(leaked)).toBe(403);
  expect(await verify(await issue())).toBe(200);
});
