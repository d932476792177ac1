// Organisations that let nobody publish without a web token (W22): by RTMP it is an argument, forwarded like any other.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { revokeStream } from "../../ts/token/revocations.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../support/publishing.ts";

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca });
  await stage.change({ require_token: true });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

describe("an organisation that requires tokens", () => {
  const claims = { streamname: STREAM, ingesturl: "", exp: 0, nbf: 0, iat: 0, iss: "", jti: "", revision: 0 };

  test.each([
    ["of the stream", { ...claims, org: "Ab1Cd" }, "allow"],
    ["of the stream with arguments", { ...claims, streamname: `${STREAM}?a=b`, org: "Ab1Cd" }, "allow"],
    ["of another stream", { ...claims, streamname: "Ab1Cd-other", org: "Ab1Cd" }, "deny"],
    ["of another organisation", { ...claims, org: "Zz9Yy" }, "deny"],
  ])("handles an RTMP token %s correctly", async (_, held, told) => {
    stage.tokens.verify = async (token) => {
      expect(token).toBe("a.b.c");
      return held;
    };
    expect(await stage.request(STREAM, { arguments: "x=1&token=a.b.c" })).toMatchObject({ command: told });
    // Forwarded like any other argument.
    if (told === "allow") expect(customer.requests[0]?.body).toMatch(/^x=1&token=a\.b\.c&call=publish&/);
    else expect(customer.requests).toHaveLength(0);
  });

  test("ends RTMP broadcasts whose tokens are revoked, also when that happens while the customer is asked", async () => {
    const OTHER = "Ab1Cd-other";
    await addStream(stage.db, OTHER, "created");
    const publish = async (name: string) => {
      const to = { streamname: name, ingesturl: "rtmp://in.example/live", exp: null, nbf: null, org: "Ab1Cd" };
      return { arguments: `token=${(await stage.tokens.issue(to)).token}` };
    };
    const revoke = () => revokeStream(stage.db, STREAM, stage.clock.ms);
    const ends = () => stage.media.commands.filter(({ command }) => command === "end");

    const clientId = await stage.allowed(STREAM, await publish(STREAM));
    await stage.allowed(OTHER, await publish(OTHER));
    await revoke();
    await until(() => ends().length > 0);
    expect(ends()).toEqual([{ command: "end", clientId, reason: "kicked", description: "Token revoked" }]);
    stage.end(clientId, "kicked");

    await until(() => stage.publishing.running().length === 1);
    const token = await publish(STREAM);
    customer.answer(async () => {
      await revoke();
      await stage.service.appDeps.revocations?.refresh();
      return { status: 200 };
    });
    expect(await stage.request(STREAM, token)).toMatchObject({ command: "deny", description: "Token revoked" });
  });

  test("refuses publishes without a token, or with an invalid one", async () => {
    for (const custom of [null, "token=", "token=a.b.c", "Token=a"]) {
      expect(await stage.request(STREAM, { arguments: custom })).toMatchObject({
        command: "deny",
        description: "A web token for this stream is required",
      });
    }
    expect(customer.requests).toHaveLength(0);
  });
});
