// Offers of real clients, posted to the whole service; the answers are read by aiortc's parser, which is
// independent. test/fixtures/offers contains recordings (their credentials are no longer used). The offers of
// clients that could not be run are reconstructed from their sources: those are the fixtures of crates/whip.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { providePython } from "../../scripts/python.mjs";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const RECORDED = [
  "aiortc-1.16",
  "chromium-156",
  "ffmpeg-8.1",
  // Recorded with OpenH264; without it, as installed, it offers no H.264.
  "firefox-153",
  "gstreamer-1.22",
  "werift-0.23",
  "whip-web-client-1.1",
  "whip-whep-1.2",
];
const RECONSTRUCTED = [
  "aiortc_1_4",
  "ffmpeg_8_main",
  "ffmpeg_8_video_only",
  "firefox_153_h264",
  "obs_30_0",
  "obs_32_simulcast",
  "safari",
];
const WITHOUT_H264 = "firefox-153-no-h264";

interface Codec {
  readonly payloadType: number;
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly feedback: readonly string[];
}
interface Section {
  readonly kind: string;
  readonly port: number;
  readonly mid: string;
  readonly direction: string;
  readonly rtcpMux: boolean;
  readonly ufrag: string;
  readonly pwd: string;
  readonly isLite: boolean;
  readonly fingerprints: readonly (readonly [string, string])[];
  readonly role: string;
  readonly candidates: readonly (readonly [string, string, number, string])[];
  readonly areCandidatesComplete: boolean;
  readonly extensions: readonly (readonly [number, string])[];
  readonly codecs: readonly Codec[];
}
interface Parsed {
  readonly bundles: readonly (readonly string[])[];
  readonly media: readonly Section[];
}

const offerOf = (name: string) =>
  RECORDED.includes(name) || name === WITHOUT_H264
    ? readFileSync(`test/fixtures/offers/${name}.sdp`, "utf8")
    : readFileSync(`crates/whip/src/sdp/fixtures/${name}.sdp`, "utf8").replace(/\r?\n/g, "\r\n");

let headgate: Headgate;
const offered = new Map<string, Parsed>();
const answered = new Map<string, Parsed>();
const texts = new Map<string, string>();

async function post(name: string): Promise<Response> {
  const stream = await headgate.newStream();
  const headers = { "content-type": "application/sdp" };
  return await fetch(headgate.whip(stream), { method: "POST", headers, body: offerOf(name) });
}

/** Not synchronously: the closing of idle connections by the service must be noticed. */
async function parse(sdps: readonly string[]): Promise<readonly Parsed[]> {
  const parsing = promisify(execFile)(providePython(), ["test/fixtures/parse-sdp.py"]);
  parsing.child.stdin?.end(JSON.stringify(sdps));
  return JSON.parse((await parsing).stdout) as Parsed[];
}

beforeAll(async () => {
  headgate = await startHeadgate();
  const names = [...RECORDED, ...RECONSTRUCTED];
  for (const name of names) {
    const response = await post(name);
    expect(response.status, name).toBe(201);
    texts.set(name, await response.text());
  }
  const parsed = await parse([...names.map(offerOf), ...names.map((name) => texts.get(name) ?? "")]);
  for (const [at, name] of names.entries()) {
    const [offer, answer] = [parsed[at], parsed[names.length + at]];
    if (offer === undefined || answer === undefined) throw new Error(`${name} was not parsed`);
    offered.set(name, offer);
    answered.set(name, answer);
  }
}, 120_000);
afterAll(async () => await headgate?.stop());

describe.each([...RECORDED, ...RECONSTRUCTED])("the answer to %s", (name) => {
  const pair = () => ({
    offer: offered.get(name) ?? { bundles: [], media: [] },
    answer: answered.get(name) ?? { bundles: [], media: [] },
  });

  test("has the offer's sections: the same kinds and mids, recvonly, none refused, one bundle", () => {
    const { offer, answer } = pair();
    const shape = ({ media }: Parsed) => media.map(({ kind, mid }) => [kind, mid]);
    expect(shape(answer)).toStrictEqual(shape(offer));
    expect(answer.bundles).toStrictEqual([offer.media.map(({ mid }) => mid)]);
    for (const section of answer.media) {
      expect(section).toMatchObject({ direction: "recvonly", rtcpMux: true, isLite: true });
      expect(section.port).not.toBe(0);
    }
    expect(texts.get(name)?.match(/^a=rtcp-mux-only\r$/gm)).toHaveLength(offer.media.length);
  });

  test("has one transport: credentials, fingerprint, a candidate, the other DTLS role", () => {
    const { offer, answer } = pair();
    const [first] = answer.media;
    for (const section of answer.media) {
      const { ufrag, pwd, fingerprints } = section;
      expect({ ufrag, pwd, fingerprints }).toStrictEqual({
        ufrag: first?.ufrag,
        pwd: first?.pwd,
        fingerprints: [["sha-256", expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)]],
      });
      expect(section.candidates[0]?.[0].toLowerCase()).toBe("udp");
      expect(section.areCandidatesComplete).toBe(true);
      // Passive offers get a client; all others get a server.
      expect(section.role).toBe(offer.media[0]?.role === "server" ? "client" : "server");
    }
  });

  test("accepts one codec of each section, as it was offered", () => {
    const { offer, answer } = pair();
    for (const [at, section] of answer.media.entries()) {
      const of = offer.media[at]?.codecs ?? [];
      const [codec, ...others] = section.codecs;
      expect(codec?.name).toBe(section.kind === "audio" ? "audio/opus" : "video/h264");
      // The others are its retransmissions.
      expect(others.map(({ name: other, parameters }) => [other, parameters.apt])).toStrictEqual(
        others.map(() => ["video/rtx", String(codec?.payloadType)]),
      );
      for (const each of section.codecs) {
        const same = of.find(({ payloadType }) => payloadType === each.payloadType);
        expect(same?.name).toBe(each.name);
        expect(same?.feedback).toStrictEqual(expect.arrayContaining([...each.feedback]));
      }
      const uris = offer.media[at]?.extensions ?? [];
      for (const extension of section.extensions) expect(uris).toContainEqual(extension);
    }
  });
});

test("Firefox without H.264 is answered 422 and told why", async () => {
  const response = await post(WITHOUT_H264);
  expect(response.status).toBe(422);
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  expect(await response.json()).toMatchObject({ status: 422, detail: expect.stringContaining("H.264") });
});
