// A media core that only records its calls.
import type { CaptureSource } from "../../ts/media/captures.ts";
import type { EndRequest, PushOrder } from "../../ts/media/codes.ts";
import type { Hold } from "../../ts/media/hold.ts";
import type { PullSource, PullStatus } from "../../ts/media/plays.ts";
import type { PreviewSource } from "../../ts/media/preview.ts";
import type { Refusal } from "../../ts/media/refusal.ts";
import type { ConnectionCount, WorkerStatus } from "../../ts/media/workers.ts";
import type {
  Media,
  OfferRead,
  OfferSummary,
  PlayerStatus,
  PublishSnapshot,
  SdpRefused,
  Upstream,
  WhipOffer,
  WhipPatched,
  WhipPublish,
} from "../../ts/media.ts";

/** A call of the media core that the service made, in order in `commands`. */
export type Command =
  | {
      readonly command: "allow";
      readonly request: number;
      readonly clientId: number;
      readonly upstreams: readonly Upstream[];
      readonly hold?: Hold;
    }
  | { readonly command: "allow_play"; readonly request: number; readonly counted: boolean }
  | ({ readonly command: "pull"; readonly request: number } & PullSource)
  | { readonly command: "dial_pull"; readonly pull: number; readonly source: PullSource | null }
  | {
      readonly command: "deny";
      readonly request: number;
      readonly code: string;
      readonly description: string;
      readonly elsewhere?: readonly string[];
    }
  | ({ readonly command: "open_whip" } & WhipPublish)
  | ({ readonly command: "add_upstream"; readonly clientId: number } & Upstream)
  | { readonly command: "remove_upstream"; readonly clientId: number; readonly id: string }
  | { readonly command: "order_push"; readonly clientId: number; readonly id: string; readonly order: PushOrder }
  | ({ readonly command: "test_upstream"; readonly test: number } & Upstream)
  | { readonly command: "forbid"; readonly push: number }
  | { readonly command: "patch_whip"; readonly clientId: number; readonly fragment: string }
  | { readonly command: "answer_whip"; readonly clientId: number; readonly answer: string }
  | { readonly command: "send_whip_data"; readonly clientId: number; readonly data: string }
  | { readonly command: "limit_whip_bitrate"; readonly clientId: number; readonly kbps: number }
  | { readonly command: "dial"; readonly push: number; readonly addresses: readonly string[] }
  | { readonly command: "release" | "switch_to"; readonly clientId: number }
  | { readonly command: "end"; readonly clientId: number; readonly reason: string; readonly description: string };

/** A preview whose bytes the test provides. */
export class RecordedPreview implements PreviewSource {
  readonly #wake: () => void;
  readonly #parts: { readonly data?: Uint8Array<ArrayBuffer>; readonly ended?: string }[] = [];
  /** Parts that were provided and not read yet. */
  get waiting(): number {
    return this.#parts.length;
  }
  isClosed = false;
  constructor(wake: () => void) {
    this.#wake = wake;
  }
  give(text: string): void {
    this.#parts.push({ data: new TextEncoder().encode(text) });
    this.#wake();
  }
  end(ended: string): void {
    this.#parts.push({ ended });
    this.#wake();
  }
  read(): { readonly data?: Uint8Array<ArrayBuffer>; readonly ended?: string } {
    return this.#parts.shift() ?? {};
  }
  close(): void {
    this.isClosed = true;
  }
}

/** A media core that does nothing by itself; the test ends its publishes. */
export class RecordingMedia implements Media {
  readonly rtmpPort = 1935;
  readonly rtmpTlsPort = null;
  readonly mediaPorts = [8189];
  readonly commands: Command[] = [];
  readonly snapshots = new Map<number, PublishSnapshot>();
  allowThrows = false;

  allow(
    request: number,
    publish: { readonly clientId: number; readonly upstreams: readonly Upstream[]; readonly hold?: Hold },
  ): void {
    if (this.allowThrows) throw new Error("media core is gone");
    this.commands.push({ command: "allow", request, ...publish });
    this.measure(publish.clientId, {});
  }
  capture(): null {
    return null;
  }
  captureNext(): CaptureSource {
    return { status: () => ({ bytes: 0, frames: 0 }), stop() {} };
  }
  switchTo(clientId: number): void {
    this.commands.push({ command: "switch_to", clientId });
  }
  release(clientId: number): void {
    this.commands.push({ command: "release", clientId });
  }
  allowPlay(request: number, { counted }: { readonly counted: boolean }): void {
    this.commands.push({ command: "allow_play", request, counted });
  }
  pull(request: number, source: PullSource): void {
    this.commands.push({ command: "pull", request, ...source });
  }
  dialPull(pull: number, source: PullSource | null): void {
    this.commands.push({ command: "dial_pull", pull, source });
  }
  /** The pulls, as set by the test. */
  pulled: readonly PullStatus[] = [];
  pulls(): readonly PullStatus[] {
    return this.pulled;
  }
  deny(request: number, { code, description, elsewhere = [] }: Refusal): void {
    const sent = elsewhere.length > 0 ? { elsewhere } : {};
    this.commands.push({ command: "deny", request, code, description, ...sent });
  }
  dial(push: number, addresses: readonly string[]): void {
    this.commands.push({ command: "dial", push, addresses });
  }
  forbid(push: number): void {
    this.commands.push({ command: "forbid", push });
  }
  orderPush(clientId: number, id: string, order: PushOrder): boolean {
    this.commands.push({ command: "order_push", clientId, id, order });
    return true;
  }
  testUpstream(test: number, upstream: Upstream): void {
    this.commands.push({ command: "test_upstream", test, ...upstream });
  }
  /** Of the next offers. */
  summary: OfferSummary = { media: [], candidates: [], agreed: [] };
  parseOffer(text: string): OfferRead {
    const summary = this.summary;
    // Opaque to the gateway, like the real one.
    const offer = { text } as unknown as WhipOffer;
    if (text.startsWith("v=0")) return { summary, result: { outcome: "parsed", offer } };
    const detail = "The offer is not valid SDP";
    return { summary, result: { outcome: "refused", code: "offer_malformed", status: 400, detail } };
  }
  ownOffer(audio: boolean, video: boolean): WhipOffer {
    return { text: "ours", audio, video } as unknown as WhipOffer;
  }
  answerWhip(clientId: number, answer: string): SdpRefused | null {
    this.commands.push({ command: "answer_whip", clientId, answer });
    if (answer.startsWith("v=0")) return null;
    return { outcome: "refused", code: "offer_malformed", status: 422, detail: "The answer does not fit the offer" };
  }
  openWhip(publish: WhipPublish): string {
    if (this.allowThrows) throw new Error("media core is gone");
    this.commands.push({ command: "open_whip", ...publish });
    this.measure(publish.clientId, {});
    return "v=0\r\n";
  }
  refuseFragment(fragment: string): SdpRefused | null {
    if (fragment.startsWith("a=")) return null;
    return { outcome: "refused", code: "fragment_malformed", status: 400, detail: "The fragment is not valid" };
  }
  /** The result of the next fragments. */
  patched: WhipPatched = { outcome: "added" };
  patchWhip(clientId: number, fragment: string): WhipPatched {
    this.commands.push({ command: "patch_whip", clientId, fragment });
    return this.patched;
  }
  sendWhipData(clientId: number, data: Uint8Array): boolean {
    this.commands.push({ command: "send_whip_data", clientId, data: Buffer.from(data).toString("latin1") });
    return true;
  }
  limitWhipBitrate(clientId: number, kbps: number): boolean {
    this.commands.push({ command: "limit_whip_bitrate", clientId, kbps });
    return this.snapshots.has(clientId);
  }
  readonly connected = new Set<number>();
  isWhipConnected(clientId: number): boolean {
    return this.connected.has(clientId);
  }
  whipDiagnostics(): null {
    return null;
  }
  setCertificate(): void {}
  transcoders(): number {
    return 0;
  }
  failedTranscoders(): number {
    return 0;
  }
  irregularities(): [] {
    return [];
  }
  refusedConnections(): number {
    return 0;
  }
  kernelDrops(): null {
    return null;
  }
  readonly smallReceiveBuffer = null;
  workers: readonly WorkerStatus[] = [{ load: 0, busy: 0, lateMs: 0 }];
  workerStatus(): readonly WorkerStatus[] {
    return this.workers;
  }
  connections(): ConnectionCount {
    return { held: 0 };
  }
  /** No process takes over. */
  readonly accepting = {
    rtmpSockets: () => ({ plain: -1, tls: null }),
    startAccepting() {},
    stopAccepting() {},
    acceptPulls: () => 0,
  };
  end(clientId: number, reason: EndRequest, description: string): void {
    this.commands.push({ command: "end", clientId, reason, description });
  }
  addUpstream(clientId: number, upstream: Upstream): "added" | "not_running" {
    this.commands.push({ command: "add_upstream", clientId, ...upstream });
    return this.snapshots.has(clientId) ? "added" : "not_running";
  }
  removeUpstream(clientId: number, id: string): boolean {
    this.commands.push({ command: "remove_upstream", clientId, id });
    return this.snapshots.has(clientId);
  }
  /** Previews of running publishes, oldest first. */
  readonly previews: RecordedPreview[] = [];
  openPreview(clientId: number, wake: () => void): PreviewSource | null {
    if (!this.snapshots.has(clientId)) return null;
    const preview = new RecordedPreview(wake);
    this.previews.push(preview);
    return preview;
  }
  players(): readonly PlayerStatus[] {
    return [];
  }

  snapshot(clientId: number): PublishSnapshot | null {
    return this.snapshots.get(clientId) ?? null;
  }
  async stop(): Promise<void> {}

  /** Sets counters of a running publish. */
  measure(clientId: number, counters: Partial<PublishSnapshot>): void {
    const zero = {
      onAir: true,
      timestampMs: 0,
      bytesIn: 0,
      bytesOut: 0,
      receivedBytes: 0,
      silentMs: 0,
      subscribers: 0,
      droppedFrames: 0,
      videoFrames: 0,
      gopMs: null,
      keyframeAwaitedMs: null,
      rttMs: null,
      lossPercent: null,
      skewMs: null,
      tracks: { video: null, audio: null },
      upstreams: [],
      transcoderError: null,
      irregularities: [],
    };
    this.snapshots.set(clientId, { clientId, ...zero, ...this.snapshots.get(clientId), ...counters });
  }
}
