// werift behind the v5 signalling: it answers the service's offer and sends one Opus packet every 20 ms.
import { MediaStreamTrack, RTCPeerConnection, useH264, useOPUS } from "werift";
import { until } from "./child.ts";
import { connectV5, type V5Client } from "./v5-client.ts";

const CONNECT_LIMIT_MS = 60_000;
/** 20 ms of silence, mono (RFC 6716 3.1). */
const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);
const PAYLOAD_TYPE = 111;

export interface V5Broadcast {
  readonly client: V5Client;
  readonly streamname: string;
  /** Whether ICE and DTLS work and no error was reported. */
  isLive(): boolean;
  close(): Promise<void>;
}

/** Goes live with audio alone and resolves when the service confirms it. */
export async function broadcastByV5(
  http: string,
  { jwt, streamname }: { readonly jwt: string; readonly streamname: string },
): Promise<V5Broadcast> {
  const client = await connectV5(http);
  const session_id = await client.signIn({ jwt });
  const { peer_id, error } = await client.call("start_broadcast", { session_id, audio: "1", video: "0" });
  if (error) throw new Error(JSON.stringify(error));
  const { sender_peer, data } = await client.push("sdp_message");
  const { sdp } = data as { readonly sdp: { readonly type: "offer"; readonly sdp: string } };
  const connection = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv6: false,
    codecs: { video: [useH264()], audio: [useOPUS()] },
  });
  const track = new MediaStreamTrack({ kind: "audio" });
  await connection.setRemoteDescription(sdp);
  const [transceiver] = connection.getTransceivers();
  transceiver?.setDirection("sendonly");
  await transceiver?.sender.replaceTrack(track);
  await connection.setLocalDescription(await connection.createAnswer());
  const answer = { type: "answer", sdp: connection.localDescription?.sdp };
  const parties = { sender_peer: peer_id, receiver_peer: sender_peer };
  const reply = await client.call("signaling_message", { ...parties, data: answer });
  if (reply.error) throw new Error(`${JSON.stringify(reply.error)}\n${answer.sdp}`);
  let sent = 0;
  const sending = setInterval(() => {
    track.writeRtp(rtpPacket(sent));
    sent += 1;
  }, 20);
  const statuses = () =>
    client.messages.filter(({ type }) => type === "rtmp_status").map((push) => JSON.stringify(push));
  await until("it is live", () => statuses().some((push) => push.includes('"connected"')), CONNECT_LIMIT_MS);
  return {
    client,
    streamname,
    isLive: () => connection.connectionState === "connected" && !statuses().some((push) => push.includes('"error"')),
    async close() {
      clearInterval(sending);
      await client.close();
      await connection.close();
    },
  };
}

/** RFC 3550 5.1. */
function rtpPacket(number: number): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt8(0x80, 0);
  header.writeUInt8(PAYLOAD_TYPE, 1);
  header.writeUInt16BE(number & 0xffff, 2);
  header.writeUInt32BE((number * 960) >>> 0, 4);
  header.writeUInt32BE(0x1234_5678, 8);
  return Buffer.concat([header, SILENCE]);
}
