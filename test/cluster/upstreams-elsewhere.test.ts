// Upstreams of a stream that change on one node in the moment in which another accepts a publish of it: that one follows.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Call } from "../../ts/cluster/channel.ts";
import { UPSTREAMS_CHANGED } from "../../ts/http/cluster/forwarding.ts";
import { answersToOthers } from "../../ts/http/cluster/others.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const ID = `stream ${STREAM}`;
const URL_OF = (key: string) => `rtmp://93.184.216.34/live/${key}`;

let closed: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closed) await close();
  closed = [];
});

test.each([
  ["POST", "/upstream"],
  ["PUT", "/upstream/ID/pause"],
  ["PUT", "/upstream/ID/resume"],
  ["DELETE", "/upstream/ID"],
])("the node that accepts a publish during %s of its stream's %s is told", async (method, path) => {
  const calls: Pick<Call, "target">[] = [];
  const owners = { ofStream: async () => found.shift() ?? null };
  const call = async (_: unknown, { target }: Call) => {
    calls.push({ target });
    throw new Error("the other node does not answer");
  };
  const elsewhere = { owners, channel: { call, close: async () => {} }, keepEnd: async () => {} };
  const gateway: Gateway = await openGateway({}, { elsewhere: elsewhere as never });
  closed.push(() => gateway.close());
  const late = { clientId: 9, organisationId: gateway.organisation.id, streamId: "s", node: { name: "other" } };
  const found: unknown[] = [null, null, null, null];
  const { id } = (await gateway.call("POST", "/stream", { body: {} })).body as { readonly id: string };
  const added = await gateway.call("POST", `/stream/${id}/upstream`, { body: { url: URL_OF("one") } });
  found.splice(0, found.length, null, late);
  const { id: upstream } = added.body as { readonly id: string };
  const body = method === "POST" ? { url: URL_OF("two") } : {};
  const answer = await gateway.call(method, `/stream/${id}${path.replace("ID", upstream)}`, { body });
  expect(answer.status).toBe(200);
  expect(calls).toEqual([{ target: `${UPSTREAMS_CHANGED}?client=9` }]);
});

describe("a node that is told", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await openStage({ webhook: null, ca: null });
    closed.push(() => stage.close());
  });

  test("pushes its publish to what was added, pauses what was paused, and nowhere else", async () => {
    const { db, media, streamUpstreams, service } = stage;
    let at = stage.clock.ms;
    const add = async (key: string) => {
      at += 1; // they are read in this order
      return (await streamUpstreams.add(db, "org1", ID, { url: URL_OF(key), label: null }, at)).id;
    };
    const [removed, paused, same] = [await add("removed"), await add("paused"), await add("same")];
    const clientId = await stage.allowed(STREAM);
    const upstream = { url: "", state: "sending", since: 0, bytesOut: 0, lastError: null, lastCause: null } as const;
    const pushed = [removed, paused, same].map((id) => ({ ...upstream, id, source: "stream" as const }));
    media.measure(clientId, { upstreams: pushed as never });
    await streamUpstreams.remove(db, "org1", ID, removed);
    await streamUpstreams.setPaused(db, "org1", ID, { id: paused, paused: true }, stage.clock.ms);
    const added = await add("added");
    media.commands.splice(0);
    const answers = answersToOthers(service);
    const tell = (client: number) => answers[UPSTREAMS_CHANGED]?.(new URLSearchParams({ client: String(client) }));
    expect(await tell(clientId)).toEqual({});
    expect(media.commands).toEqual([
      { command: "remove_upstream", clientId, id: removed },
      { command: "order_push", clientId, id: paused, order: "pause" },
      { command: "add_upstream", clientId, id: added, url: URL_OF("added"), source: "stream" },
    ]);
    expect(await tell(clientId + 1)).toEqual({});
  });
});
