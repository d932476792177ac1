// Play tokens: the answer of /stream/{id}/play-token, that no other token is accepted instead, and a real
// player with and without one, whose use the list of tokens shows.
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { start, until } from "../support/child.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { type Gateway, openGateway, START_MS } from "../support/gateway.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const NOW = START_MS / 1000;

interface PlayToken {
  readonly token: string;
  readonly exp: number;
  readonly streamname: string;
}

describe("a play token", () => {
  let gateway: Gateway;
  let id: string;
  let name: string;

  beforeAll(async () => {
    gateway = await openGateway();
    const { body } = await gateway.call("POST", "/stream");
    const stream = body as { id: string; ingest: { rtmp: { streamname: string } } };
    id = stream.id;
    name = stream.ingest.rtmp.streamname;
  });
  afterAll(() => gateway.close());

  const create = (body: unknown = {}, more = {}) =>
    gateway.call("POST", `/stream/${id}/play-token`, { body, ...more }) as Promise<{ status: number; body: PlayToken }>;

  test("is only for players of its stream, and valid for a day", async () => {
    const { status, body } = await create();
    expect(status).toBe(200);
    expect(body).toEqual({ token: body.token, exp: NOW + 86_400, streamname: `${name}?token=${body.token}` });
    const { aud, streamname, org } = decodeJwt(body.token);
    expect({ aud, streamname, org }).toEqual({ aud: "play", streamname: name, org: gateway.organisation.hash });
  });

  test("is valid until the given exp, which has bounds", async () => {
    expect((await create({ exp: NOW + 60 })).body.exp).toBe(NOW + 60);
    for (const exp of [NOW, NOW + 366 * 86_400]) expect((await create({ exp })).status).toBe(400);
    expect((await create({ exp: "tomorrow" })).status).toBe(400);
  });

  test("is not valid for publishing", async () => {
    const { token } = (await create()).body;
    const verified = await gateway.call("POST", "/webcaster/verify", { key: null, body: { token } });
    expect(verified).toMatchObject({ status: 403, body: { errorCode: 1002, message: "jwt malformed" } });
  });

  test("can be revoked like any other", async () => {
    const { token } = (await create()).body;
    expect((await gateway.call("POST", "/webcaster/revoke", { body: { token } })).status).toBe(200);
  });

  test("is not issued for another organisation's stream, nor to a readonly key", async () => {
    const other = await gateway.newOrganisation("Other");
    expect((await create({}, { key: other.keys.administrator })).status).toBe(404);
    expect((await create({}, { key: gateway.keys.readonly })).status).toBe(403);
  });
});

describe("a real player", () => {
  let headgate: Headgate;

  beforeAll(async () => {
    headgate = await startHeadgate();
  });
  afterAll(() => headgate?.stop());

  test("gets the stream with its token, and nothing without one or with a web token", async () => {
    const name = await headgate.newStream();
    const [stream] = (await headgate.call("GET", "/stream")) as unknown as { id: string }[];
    const { streamname } = (await headgate.call("POST", `/stream/${stream?.id}/play-token`)) as unknown as PlayToken;
    const ingesturl = headgate.rtmp;
    const web = await headgate.call("POST", "/webcaster", { streamname: name, ingesturl });
    const { token } = web["data"] as { token: string };
    await headgate.call("PUT", "/organisation/settings", { play: "token" });
    const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 8 });
    const played = await until("the stream plays with its token", () =>
      packetsOf(`${headgate.rtmp}/${streamname}`).catch(() => null),
    );
    expect(played.length).toBeGreaterThan(100);
    await encoder.exit;

    const again = broadcast(`${headgate.rtmp}/${name}`, { seconds: 8 });
    await until("it is live again", async () => {
      const { state } = await headgate.call("GET", `/stream/${stream?.id}`);
      return state === "live";
    });
    for (const wrong of [name, `${name}?token=${token}`, `${name}?token=`]) {
      await expect(packetsOf(`${headgate.rtmp}/${wrong}`)).rejects.toThrow();
    }
    again.kill("SIGKILL");
    await again.exit;
    const log = headgate.process.stderr();
    expect(log.match(/"msg":"player started"/g)).toHaveLength(1);
    expect(log.match(/"cause":"token_(required|invalid|of_another_stream)".*"msg":"player denied"/g)).toHaveLength(3);
    expect(log).not.toContain(token);
  });

  test("the last use of a play token is that of a player that was let in", async () => {
    interface Stream {
      readonly id: string;
      readonly ingest: { readonly rtmp: { readonly streamname: string } };
    }
    const newStream = async () => (await headgate.call("POST", "/stream")) as unknown as Stream;
    /** As a player is given it: a name and what is behind it. */
    const playName = async ({ id }: Stream) =>
      (await headgate.call("POST", `/stream/${id}/play-token`))["streamname"] as string;
    const lastUsed = async ({ id }: Stream) => {
      const [row] = (await headgate.call("GET", `/token?stream=${id}`)) as unknown as { last_used_at: string | null }[];
      return row?.last_used_at;
    };
    const play = async (name: string) => await start("ffprobe", ["-v", "error", `${headgate.rtmp}/${name}`]).exit;

    await headgate.call("PUT", "/organisation/settings", { play: "token" });
    const [stream, other] = [await newStream(), await newStream()];
    const name = stream.ingest.rtmp.streamname;
    const publisher = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120, size: "160x90" });
    await until("it is live", async () => (await headgate.call("GET", `/stream/${stream.id}`))["state"] === "live");
    const [own, ofAnother] = [await playName(stream), await playName(other)];
    expect([await lastUsed(stream), await lastUsed(other)]).toEqual([null, null]);
    await play(`${name}?${ofAnother.split("?")[1]}`);
    await play(own);
    await until("its use is recorded", async () => (await lastUsed(stream)) !== null);
    expect(await lastUsed(other)).toBeNull();
    publisher.kill("SIGKILL");
  });
});
