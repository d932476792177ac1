// Error codes (M2, M19, T2, T3): a number has one meaning, and every error that a caller can meet has a
// number.
import { expect, test } from "vitest";
import {
  AnswerPending,
  BadApiKey,
  InvalidValue,
  NotUnique,
  ParameterRequired,
  StoreFailed,
  UnknownRecord,
  WrongDataType,
} from "../../ts/errors.ts";
import { answerOf } from "../../ts/http/error-answers.ts";
import { codesOf, ERROR_CODES, type ErrorFamily, type ErrorName } from "../../ts/http/error-codes.ts";

/** Numbers with two meanings in the specification, one in each service (M2; T2, T3). */
const TWO_MEANINGS = [1002, 1003];
const FAMILIES: readonly ErrorFamily[] = ["management", "token"];
/** Fixed by the specification; deployed clients read them. */
const CONTRACT = {
  management: {
    1002: "parameter_required",
    1003: "not_unique",
    1004: "wrong_data_type",
    2001: "access_denied",
    3001: "unknown_stream",
    4002: "wrong_credentials",
    9000: "malformed_json",
    9001: "bad_webhook_url",
    9409: "idempotency_key_reused",
    9429: "too_many_requests",
  },
  token: { 1000: "parameter_required", 1001: "access_denied", 1002: "bad_token", 1003: "wrong_data_type" },
} as const;

const namesOf = (family: ErrorFamily, number: number) =>
  codesOf(family)
    .filter((code) => code.number === number)
    .map(({ name }) => name);

test.each(FAMILIES)("in the %s family a number has one meaning, and a meaning one number", (family) => {
  const codes = codesOf(family);
  expect(new Set(codes.map(({ number }) => number)).size).toBe(codes.length);
  expect(new Set(codes.map(({ name }) => ERROR_CODES[name].says)).size).toBe(codes.length);
});

test("only numbers with two meanings in the specification differ between the families", () => {
  const others = codesOf("management")
    .filter(({ number, name }) => namesOf("token", number).some((other) => other !== name))
    .map(({ number }) => number);
  expect(others).toEqual(TWO_MEANINGS);
});

test.each(FAMILIES)("the specified numbers of the %s family stay", (family) => {
  for (const [number, name] of Object.entries(CONTRACT[family])) {
    expect(namesOf(family, Number(number))).toEqual([name]);
  }
  const ours = codesOf(family).filter(({ number }) => !(number in CONTRACT[family]));
  expect(ours.filter(({ number, name }) => number < 9000 && name !== "unknown_stream")).toEqual([]);
});

test.each<[error: Parameters<typeof answerOf>[0], name: ErrorName, message: string, token: string]>([
  [new ParameterRequired("tags"), "parameter_required", "Parameter required: tags", "Parameter required: tags"],
  [new WrongDataType("exp", "integer"), "wrong_data_type", "Wrong Data Type: exp", "Wrong data type: exp"],
  [new InvalidValue("exp", "is past"), "invalid_value", "Invalid value: exp is past", "Invalid value: exp is past"],
])("%o names the faulty parameter, in both families", (error, name, message, tokenMessage) => {
  const body = { error: { code: ERROR_CODES[name].management, message } };
  expect(answerOf(error, "management").body).toMatchObject(body);
  const flat = { success: false, errorCode: ERROR_CODES[name].token, message: tokenMessage };
  expect(answerOf(error, "token").body).toStrictEqual(flat);
});

test("a missing or wrong API key names the headers that carry one", () => {
  const [error, required] = [new BadApiKey(), "x-service-apikey"];
  const message = "Access denied: send a valid API key in the header x-service-apikey or x-api-key";
  expect(answerOf(error, "management", ["x-api-key", required]).body).toStrictEqual({
    error: { code: 2001, message, userinfo: { required_header: required } },
  });
  const flat = { success: false, errorCode: 1001, message: "Provided APIKey is not valid" };
  expect(answerOf(error, "token").body).toStrictEqual(flat);
});

test.each([
  [new NotUnique("email"), 1003, "Not unique: email"],
  [new UnknownRecord("user"), 9005, "Unknown user"],
  [new UnknownRecord("API key"), 9006, "Unknown API key"],
  [new UnknownRecord("session"), 9007, "Unknown session"],
  [new AnswerPending(1), 9410, "The first request with this Idempotency-Key is still running"],
  [new StoreFailed("disk"), 9503, "Temporarily unavailable"],
])("%o has the code %i", (error, code, message) => {
  expect(answerOf(error, "management").body).toMatchObject({ error: { code, message } });
});
