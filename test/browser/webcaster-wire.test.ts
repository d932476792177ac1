// Formats that the browser client writes and reads: the offer's URL, stream names, SDP fragments, Link
// headers, refusals, and statistics.
import { describe, expect, test } from "vitest";
import { metricsOf, readingOf, receivedCount, type Stats } from "../../ts/webcaster/pure/metrics.ts";
import { refusal } from "../../ts/webcaster/pure/problem.ts";
import { hasCodec, iceServersOf, renewedAnswer, restartFragment } from "../../ts/webcaster/pure/sdp.ts";
import { type EndpointParts, encodeStreamName, endpointUrl } from "../../ts/webcaster/pure/stream-name.ts";

describe("the URL of the offer", () => {
  const parts = (some: Partial<EndpointParts>): EndpointParts => ({
    serverUrl: "https://h",
    streamName: null,
    ingestUrl: null,
    transcodeAudioBitrateBps: null,
    isStereo: false,
    ...some,
  });
  const rtmp = { ingestUrl: "rtmp://h:1935/live" };

  test.each<[what: string, given: Partial<EndpointParts>, url: string]>([
    ["a host alone", {}, "https://h/p/webrtc"],
    ["a host with a slash", { serverUrl: "https://h:8080/" }, "https://h:8080/p/webrtc"],
    ["an endpoint with a slash", { serverUrl: "https://h/p/webrtc/" }, "https://h/p/webrtc"],
    ["the endpoint itself", { serverUrl: "https://h/p/webrtc" }, "https://h/p/webrtc"],
    ["an endpoint behind a prefix", { serverUrl: "https://h/media/p/webrtc" }, "https://h/media/p/webrtc"],
    [
      "a stream",
      { streamName: "N", ...rtmp },
      "https://h/p/webrtc?stream_name=N&stream_url=rtmp%3A%2F%2Fh%3A1935%2Flive",
    ],
    [
      "a stream record's URL",
      { serverUrl: "https://h/p/webrtc?stream_name=N&stream_url=r" },
      "https://h/p/webrtc?stream_name=N&stream_url=r",
    ],
    ["a name that is not escaped", { streamName: "N?k=v&k2=v2" }, "https://h/p/webrtc?stream_name=N?k=v&k2=v2"],
    [
      "an escaped name",
      { streamName: encodeStreamName("N?k=v&k2=v2") },
      "https://h/p/webrtc?stream_name=N%3Fk%3Dv%26k2%3Dv2",
    ],
    [
      "audio",
      { transcodeAudioBitrateBps: 96_000.4, isStereo: true },
      "https://h/p/webrtc?audio_bitrate=96000&stereo=1",
    ],
  ])("%s", (_, given, url) => expect(endpointUrl(parts(given))).toBe(url));
});

test("a stream name is escaped as a whole, arguments of an object first as form fields", () => {
  expect(encodeStreamName("Ab1Cd-9XyZ0")).toBe("Ab1Cd-9XyZ0");
  expect(encodeStreamName("N", { pass: "a&b=c", n: 1 })).toBe("N%3Fpass%3Da%2526b%253Dc%26n%3D1");
  expect(encodeStreamName("N?a=1", { b: true })).toBe("N%3Fa%3D1%26b%3Dtrue");
  const forms = new URLSearchParams(decodeURIComponent(encodeStreamName("N", { pass: "ä &=?+ %" })).slice(2));
  expect(forms.get("pass")).toBe("ä &=?+ %");
});

describe("SDP", () => {
  const lines = (...given: string[]) => `${given.join("\r\n")}\r\n`;
  const offer = lines(
    "v=0",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111",
    "a=ice-ufrag:new+",
    "a=ice-pwd:secret/new",
    "a=mid:0",
    "a=rtpmap:111 OPUS/48000/2",
    "m=video 9 UDP/TLS/RTP/SAVPF 102",
    "a=mid:1",
    "a=rtpmap:102 VP8/90000",
  );

  test("codecs are found by name in any case", () => {
    expect([hasCodec(offer, "opus"), hasCodec(offer, "H264")]).toEqual([true, false]);
  });

  test("an ICE restart sends the new credentials and no candidates", () => {
    expect(restartFragment(offer)).toBe(
      lines("a=ice-ufrag:new+", "a=ice-pwd:secret/new", "m=audio 9 RTP/AVP 0", "a=mid:0", "a=end-of-candidates"),
    );
  });

  test("the service's new credentials replace the old ones in every section, literally", () => {
    const answer = lines(
      "v=0",
      "a=ice-ufrag:old",
      "a=ice-pwd:o",
      "a=candidate:1",
      "m=video",
      "a=ice-ufrag:old",
      "a=ice-pwd:o",
    );
    const renewed = renewedAnswer(answer, lines("a=ice-ufrag:$&x", "a=ice-pwd:p$1"));
    expect(renewed).toBe(
      lines("v=0", "a=ice-ufrag:$&x", "a=ice-pwd:p$1", "a=candidate:1", "m=video", "a=ice-ufrag:$&x", "a=ice-pwd:p$1"),
    );
  });

  test("ICE servers are read from Link headers that a browser joined", () => {
    const link =
      '<stun:stun.example:3478>; rel="ice-server", ' +
      '<turn:turn.example?transport=udp>; rel="ice-server"; username="1790000000:a,b"; credential="x=;y", ' +
      '<https://h/docs>; rel="help", <javascript:alert(1)>; rel="ice-server"';
    expect(iceServersOf(link)).toEqual([
      { urls: "stun:stun.example:3478" },
      { urls: "turn:turn.example?transport=udp", username: "1790000000:a,b", credential: "x=;y" },
    ]);
    expect(iceServersOf(null)).toEqual([]);
  });
});

describe("refusals", () => {
  const problem = (code: string, detail: string) =>
    JSON.stringify({ type: "/docs", title: "Title", status: 0, detail, code });
  test.each<[status: number, code: number, isTransient: boolean]>([
    [400, 4005, false],
    [401, 4002, false],
    [403, 4001, false],
    [404, 4003, false],
    [409, 4004, true],
    [415, 4005, false],
    [422, 4005, false],
    [429, 4006, true],
    [500, 4009, true],
    [502, 4009, true],
    [503, 4007, true],
    [504, 4008, true],
  ])("status %i is error %i", (status, code, isTransient) => {
    const error = refusal(status, problem("some_code", "Some words"), "7", 0);
    expect(error).toMatchObject({
      code,
      status,
      isTransient,
      detail: "Some words",
      problem: "some_code",
      retryAfterSec: 7,
    });
  });

  test.each([
    ["7", 7],
    ["-7", null],
    ["7.5", null],
    ["soon", null],
    ["", null],
    ["Sat, 31 Jan 2026 14:00:07 GMT", 7],
    ["Sat, 31 Jan 2026 13:00:00 GMT", 0],
  ])("Retry-After: %s", (text, seconds) => {
    expect(refusal(503, "", text, Date.parse("2026-01-31T14:00:00Z")).retryAfterSec).toBe(seconds);
  });

  test.each(["", "<html>", "null", "[]", '{"detail":1}'])(
    "the body %j contains no reason, and the status is used",
    (body) => {
      expect(refusal(403, body, null, 0)).toMatchObject({
        detail: "HTTP status 403",
        problem: null,
        retryAfterSec: null,
      });
    },
  );
});

describe("metrics", () => {
  const about = { state: "live", liveSec: 5, reconnects: 1, isHidden: false } as const;
  const report = (seconds: number, more: Stats = {}): Stats[] => [
    { id: "T", type: "transport", timestamp: seconds * 1_000, selectedCandidatePairId: "P2" },
    { id: "P1", type: "candidate-pair", bytesReceived: 9_999, responsesReceived: 1 },
    {
      id: "P2",
      type: "candidate-pair",
      localCandidateId: "L",
      bytesReceived: seconds * 100,
      responsesReceived: seconds,
      currentRoundTripTime: 0.0214,
      availableOutgoingBitrate: 3_000_000,
    },
    { id: "L", type: "local-candidate", candidateType: "host", protocol: "udp" },
    { id: "C", type: "codec", mimeType: "video/H264" },
    {
      id: "V",
      type: "outbound-rtp",
      kind: "video",
      codecId: "C",
      bytesSent: seconds * 250_000,
      retransmittedBytesSent: 0,
      framesEncoded: seconds * 25,
      packetsSent: seconds * 200,
      totalEncodeTime: seconds * 0.1,
      totalPacketSendDelay: seconds * 0.4,
      frameWidth: 1280,
      frameHeight: 720,
      keyFramesEncoded: 3,
      qualityLimitationReason: "none",
      ...more,
    },
    { id: "R", type: "remote-inbound-rtp", kind: "video", fractionLost: 0.0123, jitter: 0.0021 },
  ];

  test("are the difference of two readings over the time between them, not over a second", () => {
    const metrics = metricsOf(readingOf(report(10)), readingOf(report(14)), about);
    expect(metrics).toEqual({
      timestampMs: 14_000,
      ...about,
      video: {
        codec: "H264",
        bitrateBps: 2_000_000,
        targetBitrateBps: null,
        framesPerSecond: 25,
        width: 1280,
        height: 720,
        keyframes: 3,
        encodeMs: 4,
        sendDelayMs: 2,
        limitedBy: "none",
      },
      audio: null,
      connection: {
        roundTripMs: 21.4,
        packetLossPercent: 1.2,
        jitterMs: 2.1,
        availableBitrateBps: 3_000_000,
        transport: "udp",
      },
    });
  });

  test("do not count retransmissions", () => {
    const metrics = metricsOf(readingOf(report(1)), readingOf(report(2, { retransmittedBytesSent: 50_000 })), about);
    expect(metrics.video?.bitrateBps).toBe(1_600_000);
  });

  test("of a first reading, or of an empty one, are not invented", () => {
    const first = metricsOf(null, readingOf(report(3)), about);
    expect(first.video).toMatchObject({ bitrateBps: 0, framesPerSecond: 0, height: 720 });
    expect(metricsOf(null, readingOf([]), about)).toMatchObject({ video: null, audio: null, connection: null });
  });

  test("detect received data by the candidate pair in use, which Firefox marks in its own way", () => {
    expect(receivedCount(readingOf(report(4)))).toBe(404);
    const firefox: Stats[] = [
      { id: "a", type: "candidate-pair", selected: false, bytesReceived: 1 },
      { id: "b", type: "candidate-pair", selected: true, bytesReceived: 70 },
    ];
    expect(receivedCount(readingOf(firefox))).toBe(70);
    expect(receivedCount(readingOf([]))).toBe(0);
  });
});
