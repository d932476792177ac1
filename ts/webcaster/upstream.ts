// One connection to the service: a WHIP session and its RTCPeerConnection, which sends at most one audio and one video
// track. It reports events and decides nothing: that is done in broadcast.ts.
import type { AuthConfig, TrackKind } from "./config.ts";
import { unlessAborted } from "./pause.ts";
import { asWebcasterError, WebcasterError } from "./pure/errors.ts";
import { hasCodec, renewedAnswer, restartFragment } from "./pure/sdp.ts";
import { WhipSession } from "./whip-session.ts";

/** Limit from the answer to the first media, milliseconds: the service gives up after 10 s. */
const CONNECT_LIMIT_MS = 12_000;
/** For the page's own function that gets a token, milliseconds: it may ask the broadcaster to log in, but a request of
 *  its own that never ends must not stop a reconnect. */
const TOKEN_LIMIT_MS = 60_000;

/** Limits of what is sent; changes while live apply immediately. */
export interface UpstreamQuality {
  /** Bits per second. */
  readonly maxVideoBitrateBps: number;
  /** Frames per second. */
  readonly maxEncodingFramerate: number;
  /** 2 halves width and height; 1 sends the camera's own size. */
  readonly scaleResolutionDownBy: number;
  /** Bits per second; null leaves it to the browser. */
  readonly maxAudioBitrateBps: number | null;
}

export interface UpstreamOptions {
  readonly endpoint: string;
  readonly auth: AuthConfig | null;
  readonly stream: MediaStream;
  readonly quality: UpstreamQuality;
  /** Aborts the attempt. */
  readonly signal: AbortSignal;
}

export interface UpstreamEvents {
  onConnectionState(state: RTCPeerConnectionState): void;
  /** The network path is interrupted; it may come back, or an ICE restart finds another. */
  onInterrupted(): void;
  /** The service closed the connection. */
  onEnded(): void;
}

export class Upstream {
  readonly connection: RTCPeerConnection;
  readonly #events: UpstreamEvents;
  readonly #senders: Partial<Record<TrackKind, RTCRtpSender>> = {};
  #session: WhipSession | null = null;
  #isConnected = false;
  #isClosed = false;

  private constructor(events: UpstreamEvents) {
    this.connection = newConnection();
    this.#events = events;
  }

  /** Connects, or throws a WebcasterError and releases everything. */
  static async open(options: UpstreamOptions, events: UpstreamEvents): Promise<Upstream> {
    const upstream = new Upstream(events);
    try {
      await upstream.#open(options);
      return upstream;
    } catch (error) {
      // The caller that aborted waits until the service knows.
      if (options.signal.aborted) await upstream.close().catch(() => {});
      const ending = options.signal.aborted ? null : await upstream.session?.ending();
      upstream.drop();
      throw asWebcasterError(ending?.isTransient === false ? ending : error, "connection_refused");
    }
  }

  async #open({ endpoint, auth, stream, quality, signal }: UpstreamOptions): Promise<void> {
    const { connection } = this;
    connection.onconnectionstatechange = () => this.#onConnectionState();
    for (const track of stream.getTracks()) {
      const transceiver = connection.addTransceiver(track, {
        direction: "sendonly",
        streams: [stream],
        sendEncodings: [encodingOf(track.kind as TrackKind, quality)],
      });
      this.#senders[track.kind as TrackKind] = transceiver.sender;
      preferOurCodec(transceiver, track.kind);
    }
    await keepResolution(this.#senders.video);
    const token = await unlessAborted(tokenOf(auth), signal);
    const offer = await connection.createOffer();
    checkCodecs(offer.sdp ?? "", this.#senders);
    // The customer is not asked about a broadcast that was stopped already, nor about one without media.
    if (signal.aborted) throw new WebcasterError("stopped");
    if (Object.keys(this.#senders).length === 0) throw new WebcasterError("nothing_to_send");
    // Posted before it is applied: the ICE servers of the answer must be set before candidates are gathered.
    const { session, answer, iceServers } = await WhipSession.open(endpoint, token, offer.sdp ?? "");
    this.#session = session;
    if (signal.aborted) throw new WebcasterError("stopped");
    if (iceServers.length > 0)
      connection.setConfiguration({ ...connection.getConfiguration(), iceServers: [...iceServers] });
    await connection.setLocalDescription(offer);
    await connection.setRemoteDescription({ type: "answer", sdp: answer });
    this.#watchTransport();
    await this.#connected(signal);
    this.#isConnected = true;
  }

  /** `https://…/p/webrtc/…`; whoever has this URL can end the broadcast. */
  get session(): WhipSession | null {
    return this.#session;
  }

  /** Whether ICE has a working path. */
  get hasPath(): boolean {
    return ["connected", "completed"].includes(this.connection.iceConnectionState);
  }

  /** Looks for another network path within the same session (RFC 9725 4.3.3). */
  async restartIce(): Promise<void> {
    const { connection } = this;
    const answer = connection.remoteDescription?.sdp ?? "";
    await connection.setLocalDescription(await connection.createOffer({ iceRestart: true }));
    try {
      const fragment = await this.#session?.restart(restartFragment(connection.localDescription?.sdp ?? ""));
      await connection.setRemoteDescription({ type: "answer", sdp: renewedAnswer(answer, fragment ?? "") });
    } catch (error) {
      // The connection continues with the previous descriptions.
      if (!this.#isClosed) await connection.setLocalDescription({ type: "rollback" }).catch(() => {});
      throw asWebcasterError(error, "connection_refused");
    }
  }

  async setQuality(quality: UpstreamQuality): Promise<void> {
    for (const kind of ["audio", "video"] as const) {
      const sender = this.#senders[kind];
      if (sender === undefined) continue;
      const parameters = sender.getParameters();
      const [encoding] = parameters.encodings;
      if (encoding === undefined) continue;
      delete encoding.maxBitrate;
      Object.assign(encoding, encodingOf(kind, quality));
      await sender.setParameters(parameters);
    }
  }

  /** Sends the stream's current tracks with the current quality. */
  async refresh({ stream, quality }: Pick<UpstreamOptions, "stream" | "quality">): Promise<void> {
    for (const track of stream.getTracks()) {
      const sender = this.#senders[track.kind as TrackKind];
      if (sender !== undefined && sender.track !== track) await sender.replaceTrack(track);
    }
    await this.setQuality(quality);
  }

  async send(kind: TrackKind, track: MediaStreamTrack | null): Promise<void> {
    const sender = this.#senders[kind];
    if (sender === undefined) {
      throw new WebcasterError("wrong_state", { detail: `this broadcast began without ${kind}` });
    }
    await sender.replaceTrack(track);
  }

  /** Ends the session first, then the connection: closing the connection first would end the session as well, and the
   *  request would fail. Resolves when the service has responded. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      await this.#session?.end();
    } finally {
      this.connection.close();
    }
  }

  /** The same without waiting, for a page being left, or for a lost connection. */
  drop(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // The request outlives the page.
    void this.#session?.end(true).catch(() => {});
    this.connection.close();
  }

  #onConnectionState(): void {
    if (this.#isClosed) return;
    const { connectionState } = this.connection;
    this.#events.onConnectionState(connectionState);
    if (this.#isConnected && ["disconnected", "failed"].includes(connectionState)) this.#events.onInterrupted();
  }

  /** A service that ends a session closes DTLS, which is visible here immediately, and in `connectionState`
   *  much later. */
  #watchTransport(): void {
    const transport = Object.values(this.#senders)[0]?.transport;
    transport?.addEventListener("statechange", () => {
      if (!this.#isClosed && this.#isConnected && transport.state === "closed") this.#events.onEnded();
    });
  }

  #connected(signal: AbortSignal): Promise<void> {
    const { connection } = this;
    return new Promise((resolve, reject) => {
      const give = (error: WebcasterError | null) => {
        clearTimeout(timer);
        connection.removeEventListener("connectionstatechange", check);
        signal.removeEventListener("abort", check);
        if (error === null) resolve();
        else reject(error);
      };
      const check = () => {
        if (signal.aborted) give(new WebcasterError("stopped"));
        else if (connection.connectionState === "connected") give(null);
        else if (connection.connectionState === "failed") give(new WebcasterError("no_media_path"));
      };
      const timer = setTimeout(() => give(new WebcasterError("no_media_path")), CONNECT_LIMIT_MS);
      connection.addEventListener("connectionstatechange", check);
      signal.addEventListener("abort", check);
      check();
    });
  }
}

async function tokenOf(auth: AuthConfig | null): Promise<string | null> {
  if (auth === null) return null;
  const { token } = auth;
  const got: unknown =
    typeof token !== "function"
      ? token
      : await unlessAborted(tokenFrom(token), AbortSignal.timeout(TOKEN_LIMIT_MS)).catch((error: unknown) => {
          throw asWebcasterError(error, "token_missing");
        });
  const text = typeof got === "string" ? got.trim() : "";
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  // Such as the login page that a web server answers with when nobody is logged in any more.
  throw new WebcasterError("token_missing", { detail: text === "" ? "It got none" : "It got another text" });
}

async function tokenFrom(call: () => string | Promise<string>): Promise<unknown> {
  return await call();
}

function newConnection(): RTCPeerConnection {
  if (typeof RTCPeerConnection !== "function") throw new WebcasterError("webrtc_missing");
  return new RTCPeerConnection({ bundlePolicy: "max-bundle" });
}

function encodingOf(kind: TrackKind, quality: UpstreamQuality): RTCRtpEncodingParameters {
  if (kind === "audio") return quality.maxAudioBitrateBps === null ? {} : { maxBitrate: quality.maxAudioBitrateBps };
  return {
    maxBitrate: quality.maxVideoBitrateBps,
    maxFramerate: quality.maxEncodingFramerate,
    scaleResolutionDownBy: quality.scaleResolutionDownBy,
  };
}

/** Offers only H.264 or Opus, with retransmission. A browser that does not support the preference offers all its
 *  codecs, and the service chooses the same. */
function preferOurCodec(transceiver: RTCRtpTransceiver, kind: string): void {
  const wanted = kind === "audio" ? /^audio\/opus$/i : /^video\/(H264|rtx)$/i;
  const codecs = RTCRtpSender.getCapabilities?.(kind)?.codecs.filter(({ mimeType }) => wanted.test(mimeType)) ?? [];
  // Mode 1 can carry frames of any size (RFC 6184 5.4).
  const isMode1 = ({ sdpFmtpLine = "" }: RTCRtpCodec) => sdpFmtpLine.includes("packetization-mode=1");
  codecs.sort((a, b) => Number(isMode1(b)) - Number(isMode1(a)));
  if (codecs.length === 0) return;
  try {
    transceiver.setCodecPreferences(codecs);
  } catch {
    // An old browser: its offer is checked in any case.
  }
}

function checkCodecs(offer: string, { audio, video }: Partial<Record<TrackKind, RTCRtpSender>>): void {
  if (video !== undefined && !hasCodec(offer, "H264")) throw new WebcasterError("h264_missing");
  if (audio !== undefined && !hasCodec(offer, "opus")) throw new WebcasterError("opus_missing");
}

/** Full resolution from the first frame on: a browser that adapts would start small and grow over several seconds. */
async function keepResolution(sender: RTCRtpSender | undefined): Promise<void> {
  if (sender === undefined) return;
  const parameters = Object.assign(sender.getParameters(), { degradationPreference: "maintain-resolution" });
  // A browser that does not support the preference can still broadcast.
  await sender.setParameters(parameters).catch(() => {});
}
