// The signature of webhook calls (W9) against the test vector of the decisions and an independent verifier.
import { Webhook as StandardWebhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { signatureHeaders } from "../../ts/publish/webhook/signature.ts";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const key = Uint8Array.from({ length: 32 }, (_, index) => index);
const id = "msg_01J9Z6Q3V5T0K8M2";
const body = Buffer.from("passcode=s3cret&call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482");

test("the signature of the test vector matches the decisions", () => {
  expect(signatureHeaders({ id, body }, [key], 1_767_225_600_999)).toStrictEqual({
    "webhook-id": id,
    "webhook-timestamp": "1767225600",
    "webhook-signature": "v1,+Dzci4NBue+wjFHJO1ejAZyTgjO3qW4Ejifz5my/BrI=",
  });
});

test("while a secret is rotated both sign, the current one first, and either verifies", () => {
  const former = new Uint8Array(32).fill(7);
  const json = Buffer.from('{"any":"bytes"}');
  const headers = signatureHeaders({ id, body: json }, [key, former], Date.now());
  expect(headers["webhook-signature"].split(" ")).toHaveLength(2);
  for (const secret of [SECRET, Buffer.from(former).toString("base64")]) {
    expect(new StandardWebhook(secret).verify(json, headers)).toEqual({ any: "bytes" });
  }
  const tampered = Buffer.from('{"any":"Bytes"}');
  expect(() => new StandardWebhook(SECRET).verify(tampered, headers)).toThrow("No matching signature found");
});

test("raw bytes that are not UTF-8 are signed unchanged", () => {
  const raw = Buffer.from([0x61, 0x3d, 0xe9, 0xff, 0x26]);
  const [signature] = Object.values(signatureHeaders({ id, body: raw }, [key], 0)).slice(-1);
  const repaired = Buffer.from(raw.toString("utf8"));
  expect(signatureHeaders({ id, body: repaired }, [key], 0)["webhook-signature"]).not.toBe(signature);
});
