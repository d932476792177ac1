// werift (a WebRTC stack in TypeScript) as broadcaster: ffmpeg encodes and sends plain RTP, which werift sends to a
// session.
import { createSocket, type Socket } from "node:dgram";
import { MediaStreamTrack, RTCPeerConnection, useH264, useOPUS } from "werift";
import { start, until } from "./child.ts";

const CONNECT_LIMIT_MS = 15_000;

/** Publishes for some seconds, then DELETEs the session; fails on any answer but 201 and 200. `filter`: another filter of
 *  ffmpeg for the encoded video. */
export async function publishByWerift(url: string, seconds: number, size: string, filter?: string): Promise<void> {
  const stun = await startStunServer();
  const connection = new RTCPeerConnection({
    iceServers: [{ urls: `stun:127.0.0.1:${stun.address().port}` }],
    iceUseIpv6: false,
    codecs: { video: [useH264()], audio: [useOPUS()] },
  });
  const feeds = await Promise.all((["video", "audio"] as const).map(openFeed));
  for (const { track } of feeds) connection.addTransceiver(track, { direction: "sendonly" });
  try {
    const offer = await connection.createOffer();
    await connection.setLocalDescription(offer);
    const headers = { "content-type": "application/sdp" };
    const response = await fetch(url, { method: "POST", headers, body: offer.sdp });
    if (response.status !== 201) throw new Error(`the offer was answered ${response.status}`);
    const session = new URL(response.headers.get("location") ?? "", url);
    await connection.setRemoteDescription({ type: "answer", sdp: await response.text() });
    await until("werift connects", () => connection.connectionState === "connected", CONNECT_LIMIT_MS);
    const [video, audio] = feeds.map(({ port }) => `rtp://127.0.0.1:${port}?pkt_size=1200`);
    const input = ["-re", "-t", String(seconds), "-f", "lavfi", "-i"];
    const filters = ["dump_extra", ...(filter === undefined ? [] : [filter])];
    const encoder = start("ffmpeg", [
      ...["-nostdin", "-loglevel", "error", ...input, `testsrc2=size=${size}:rate=25`],
      ...[...input, "sine=sample_rate=48000"],
      ...["-map", "0:v", "-c:v", "libx264", "-profile:v", "baseline", "-preset", "ultrafast", "-tune", "zerolatency"],
      ...["-g", "50", "-pix_fmt", "yuv420p", "-bsf:v", filters.join(), "-f", "rtp", video ?? ""],
      ...["-map", "1:a", "-c:a", "libopus", "-ac", "2", "-f", "rtp", audio ?? ""],
    ]);
    const code = await encoder.exit;
    if (code !== 0) throw new Error(`ffmpeg ended with ${code}: ${encoder.stderr()}`);
    const { status } = await fetch(session, { method: "DELETE" });
    if (status !== 200) throw new Error(`the DELETE was answered ${status}`);
  } finally {
    for (const { socket } of feeds) socket.close();
    stun.close();
    await connection.close();
  }
}

/** Refuses every request (RFC 8489 §6.3.4, error 400). Without a STUN server werift queries a public one for five
 *  seconds before it begins, and a busy machine needs more than the rest of the ten that a session has for ICE and
 *  DTLS. */
async function startStunServer(): Promise<Socket> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  socket.on("message", (request, { port, address }) => {
    const refusal = Buffer.from("0111000800000000000000000000000000000000" + "0009000400000400", "hex");
    request.copy(refusal, 4, 4, 20); // the cookie and the transaction
    socket.send(refusal, port, address);
  });
  return socket;
}

/** A track, and the port that receives its RTP packets. */
async function openFeed(
  kind: "video" | "audio",
): Promise<{ readonly track: MediaStreamTrack; readonly port: number; readonly socket: Socket }> {
  const track = new MediaStreamTrack({ kind });
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  socket.on("message", (packet) => track.writeRtp(packet));
  return { track, port: socket.address().port, socket };
}
