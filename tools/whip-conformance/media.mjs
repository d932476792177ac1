// A peer with a complete ICE and DTLS stack that is not ours (werift), connected to a session: for rows about what
// happens below HTTP. It sends no media.
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { RTCPeerConnection, useH264, useOPUS } from "werift";
import { must } from "./client.mjs";
import { attribute } from "./offer.mjs";

const CONNECT_LIMIT_MS = 10_000;
const FAREWELL_MS = 100;
const ALERT = 21;
/** Level warning, description close_notify (RFC 5246 section 7.2.1). */
const CLOSE_NOTIFY = Buffer.from([1, 0]);

/** Opens a session with its own peer and waits until DTLS is established. */
export async function connectedPeer(client) {
  const connection = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ["127.0.0.1"],
    codecs: { video: [useH264()], audio: [useOPUS()] },
  });
  for (const kind of ["audio", "video"]) connection.addTransceiver(kind, { direction: "sendonly" });
  const offer = await connection.createOffer();
  // Not awaited: without a STUN server werift queries a public one for five seconds. Checks start without candidates.
  connection.setLocalDescription(offer).catch(() => {});
  const [ufrag, pwd] = [attribute(offer.sdp, "ice-ufrag"), attribute(offer.sdp, "ice-pwd")];
  const session = await client.open({ sdp: offer.sdp, mids: [attribute(offer.sdp, "mid")], ufrag, pwd });
  await connection.setRemoteDescription({ type: "answer", sdp: session.answer });
  const [transport] = connection.dtlsTransports;
  const reaches = async (state, limitMs) => {
    const deadline = AbortSignal.timeout(limitMs);
    while (transport.state !== state && !deadline.aborted) {
      const changed = new EventTarget();
      const { unSubscribe } = transport.onStateChange.subscribe(() => changed.dispatchEvent(new Event("change")));
      await once(changed, "change", { signal: deadline }).catch(() => {});
      unSubscribe();
    }
    return transport.state === state;
  };
  const peer = {
    session,
    /** Whether the server has closed DTLS. */
    closed: (limitMs) => reaches("closed", limitMs),
    /** Closes DTLS with close_notify and then closes the connection. werift itself would only stop sending. */
    async leave() {
      if (transport.state === "connected") {
        const { dtls } = transport;
        const encrypt = dtls.cipher.encryptPacket.bind(dtls.cipher);
        dtls.cipher.encryptPacket = (packet) => {
          packet.recordLayerHeader.contentType = ALERT;
          return encrypt(packet);
        };
        await dtls.send(CLOSE_NOTIFY);
        // A socket that is closed immediately discards what it has not sent yet.
        await pause(FAREWELL_MS);
      }
      await connection.close();
    },
    /** Stops sending without close_notify. */
    vanish: () => connection.close(),
  };
  const isConnected = await reaches("connected", CONNECT_LIMIT_MS);
  if (!isConnected) await peer.vanish();
  must(isConnected, `no ICE and DTLS within ${CONNECT_LIMIT_MS / 1000} s`);
  return peer;
}
