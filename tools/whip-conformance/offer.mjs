// Offers of a sender of H.264 and Opus, and of senders that a WHIP endpoint must refuse. Generated here, not recorded.
import { randomBytes } from "node:crypto";

const AUDIO = {
  kind: "audio",
  payloads: "111",
  codecs: ["a=rtpmap:111 opus/48000/2", "a=rtcp-fb:111 transport-cc", "a=fmtp:111 minptime=10;useinbandfec=1"],
};
const VIDEO = {
  kind: "video",
  payloads: "102 103 108 109",
  codecs: [
    "a=rtpmap:102 H264/90000",
    "a=rtcp-fb:102 nack",
    "a=rtcp-fb:102 nack pli",
    "a=rtcp-fb:102 transport-cc",
    "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f",
    "a=rtpmap:103 rtx/90000",
    "a=fmtp:103 apt=102",
    "a=rtpmap:108 H264/90000",
    "a=fmtp:108 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
    "a=rtpmap:109 rtx/90000",
    "a=fmtp:109 apt=108",
  ],
};
/** A video section with a codec that RTMP cannot carry. */
const VP8 = { kind: "video", payloads: "96", codecs: ["a=rtpmap:96 VP8/90000", "a=rtcp-fb:96 nack pli"] };

/** Sections by name, for `offer({ sections })`. */
export const sections = { audio: AUDIO, video: VIDEO, vp8: VP8 };

/**
 * @typedef {{ sdp: string, ufrag: string, pwd: string, mids: string[] }} Offer
 * @param {{ sections?: (typeof AUDIO)[], direction?: string, setup?: string, bundleOnly?: boolean, simulcast?: string[] }} [wanted]
 *   `bundleOnly`: every section but the first has port 0 and a=bundle-only (RFC 9143 max-bundle).
 *   `simulcast`: rids of the video.
 * @returns {Offer}
 */
export function offer(wanted = {}) {
  const { sections: parts = [AUDIO, VIDEO], direction = "sendonly", setup = "actpass" } = wanted;
  const { ufrag, pwd } = credentials();
  const fingerprint = [...randomBytes(32)].map((byte) => byte.toString(16).padStart(2, "0").toUpperCase()).join(":");
  const mids = parts.map((_, at) => String(at));
  const lines = [
    "v=0",
    `o=- ${randomBytes(6).readUIntBE(0, 6)} 2 IN IP4 127.0.0.1`,
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${mids.join(" ")}`,
    "a=extmap-allow-mixed",
    "a=msid-semantic: WMS conformance",
  ];
  for (const [at, { kind, payloads, codecs }] of parts.entries()) {
    const isBundledOnly = wanted.bundleOnly === true && at > 0;
    const rids = kind === "video" ? (wanted.simulcast ?? []) : [];
    lines.push(
      `m=${kind} ${isBundledOnly ? 0 : 9} UDP/TLS/RTP/SAVPF ${payloads}`,
      "c=IN IP4 0.0.0.0",
      ...(isBundledOnly ? ["a=bundle-only"] : []),
      `a=ice-ufrag:${ufrag}`,
      `a=ice-pwd:${pwd}`,
      "a=ice-options:trickle",
      `a=fingerprint:sha-256 ${fingerprint}`,
      `a=setup:${setup}`,
      `a=mid:${mids[at]}`,
      "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
      ...(rids.length > 0 ? ["a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"] : []),
      `a=${direction}`,
      `a=msid:conformance ${kind}-${at}`,
      "a=rtcp-mux",
      "a=rtcp-mux-only",
      "a=rtcp-rsize",
      ...codecs,
      ...rids.map((rid) => `a=rid:${rid} send`),
      ...(rids.length > 0 ? [`a=simulcast:send ${rids.join(";")}`] : []),
    );
  }
  return { sdp: `${lines.join("\r\n")}\r\n`, ufrag, pwd, mids };
}

/** New ICE credentials, RFC 8839 section 5.4. */
export function credentials() {
  const text = (bytes) => randomBytes(bytes).toString("base64").replace(/=/g, "");
  return { ufrag: text(6), pwd: text(18) };
}

/** One m-section of an SDP text, without its session part, each as lines. */
export function mediaOf(sdp) {
  return sdp
    .split(/^(?=m=)/m)
    .slice(1)
    .map((section) => section.split(/\r?\n/).filter((line) => line !== ""));
}

/** The first value of an attribute anywhere in an SDP text or fragment, or null. */
export function attribute(sdp, name) {
  return new RegExp(`^a=${name}:(.*?)\\s*$`, "m").exec(sdp)?.[1] ?? null;
}
