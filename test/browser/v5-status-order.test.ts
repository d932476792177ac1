import { expect, test } from "vitest";
import { StatusOrder } from "../../ts/webcaster/v5/status-order.ts";

type Step = "started" | "connected" | "broadcasting";

function statusesOf(steps: readonly Step[]): readonly string[] {
  const said: string[] = [];
  const order = new StatusOrder((status) => said.push(status));
  for (const step of steps) {
    if (step === "started") {
      said.push("StartBroadcastSuccess");
      order.handleStarted();
    } else if (step === "connected") order.handleConnected();
    else order.handleStatus(step);
  }
  return said;
}

test.each<{ steps: Step[] }>([
  { steps: ["started", "connected", "broadcasting"] },
  { steps: ["started", "broadcasting", "connected"] },
  { steps: ["connected", "started", "broadcasting"] },
  { steps: ["connected", "broadcasting", "started"] },
  { steps: ["broadcasting", "started", "connected"] },
  { steps: ["broadcasting", "connected", "started"] },
])("whichever arrives first, a page is told of the start, the connection and the broadcast: $steps", ({ steps }) => {
  expect(statusesOf(steps)).toStrictEqual(["StartBroadcastSuccess", "connected", "broadcasting"]);
});

test("a connection without a status of the service is only connected, and an output that returns is told each time", () => {
  expect(statusesOf(["connected", "started"])).toStrictEqual(["StartBroadcastSuccess", "connected"]);
  const said: string[] = [];
  const order = new StatusOrder((status) => said.push(status));
  order.handleStarted();
  for (const status of ["broadcasting", "reconnecting", "broadcasting"] as const) order.handleStatus(status);
  expect(said).toStrictEqual(["connected", "broadcasting", "reconnecting", "broadcasting"]);
});
