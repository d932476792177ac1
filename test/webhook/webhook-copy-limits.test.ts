// How many copies of calls wait for a second webhook that does not answer: a thousand of each organisation, ten
// thousand in all. What is beyond that is dropped and counted, and holds no event back.
import { pino } from "pino";
import { expect, test } from "vitest";
import { createCopies } from "../../ts/publish/webhook/copies/copies.ts";
import { webhookCallOf } from "../support/webhook-call.ts";

const IN_FLIGHT = 8;

const second = { url: "https://second.example/", events: "all", keys: [] } as const;

/** Copies whose receivers never answer. */
function openCopies() {
  const counted = { posted: 0, dropped: 0, held: 0 };
  const copies = createCopies({
    webhook: {
      post() {
        counted.posted += 1;
        return new Promise(() => {});
      },
    },
    outbox: {
      hold() {
        counted.held += 1;
      },
      release() {},
    },
    metrics: {
      countDropped() {
        counted.dropped += 1;
      },
    },
    log: pino({ level: "silent" }),
    deadlineMs: 1_000,
  });
  let clientId = 0;
  const send = (organisationId: string, quantity: number) => {
    for (let n = 0; n < quantity; n += 1) {
      clientId += 1;
      copies.send({ ...webhookCallOf(clientId, organisationId), copies: second });
    }
  };
  return { counted, send };
}

test("an organisation has eight copies in flight and a thousand that wait", () => {
  const { counted, send } = openCopies();
  send("org1", IN_FLIGHT + 1_000);
  expect(counted).toEqual({ posted: IN_FLIGHT, dropped: 0, held: IN_FLIGHT + 1_000 });
  send("org1", 1);
  expect(counted).toEqual({ posted: IN_FLIGHT, dropped: 1, held: IN_FLIGHT + 1_000 });
  send("org2", 1);
  expect(counted).toMatchObject({ posted: IN_FLIGHT + 1, dropped: 1 });
});

test("all organisations together have ten thousand", () => {
  const { counted, send } = openCopies();
  for (let n = 0; n < 10; n += 1) send(`org${n}`, 1_000);
  expect(counted).toMatchObject({ dropped: 0, held: 10_000 });
  send("another", 1);
  expect(counted).toMatchObject({ dropped: 1, held: 10_000 });
});
