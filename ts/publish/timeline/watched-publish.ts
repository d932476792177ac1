// One running publish as its timeline sees it: turns readings of the media core's counters, and what is wrong with it
// (monitoring/health.ts), into moments. Pure: readings and time are arguments.
import type { Protocol } from "../../media/protocols.ts";
import type { PublishSnapshot, WhipDiagnostics } from "../../media.ts";
import type { Finding } from "../monitoring/health.ts";
import { FINDING_CODES, type FindingCode } from "../monitoring/health-words.ts";
import { type Moment, type MomentFigures, MomentList, moment, type What } from "./moments.ts";

/** Texts of the media core are cut to this length in a timeline, characters. */
const WORDS_LIMIT = 200;

/** Findings that have moments of another kind: at what happened, not for as long as it lasts. */
const WITH_OWN_MOMENTS = ["upstream_down", "audio_not_transcoded", "irregular"] as const satisfies FindingCode[];
/** Findings that are one moment for as long as they last. */
export type Trouble = Exclude<FindingCode, (typeof WITH_OWN_MOMENTS)[number]>;
const TROUBLES = FINDING_CODES.filter((code): code is Trouble => !WITH_OWN_MOMENTS.some((other) => other === code));

/** The values of one reading; null where nothing was measured. */
export interface Observation {
  readonly snapshot: PublishSnapshot | null;
  /** WHIP only. */
  readonly diagnostics: WhipDiagnostics | null;
  /** ICE and DTLS are complete; not used for RTMP. */
  readonly isConnected: boolean;
  /** What is wrong with it; null when that was not decided with this reading. */
  readonly findings: readonly Finding[] | null;
}

/** Figures of a whole publish for one log line, besides those that the media core reports with the end. */
export interface EndFigures {
  readonly upstreams: number;
  /** How often an upstream was lost. */
  readonly upstreamLosses: number;
}

export class WatchedPublish {
  readonly #moments = new MomentList();
  readonly #seen = new Set<What>();
  readonly #open = new Map<Trouble, Moment<Trouble>>();
  /** By code, at the first occurrence. */
  readonly #irregular = new Map<string, Moment<"irregular">>();
  /** Upstreams that have accepted it at least once, and since when each is lost, epoch ms. */
  readonly #upstreams = new Map<string, number | null>();
  #losses = 0;
  #observed: Observation | null = null;
  #requestedBefore = 0;

  /** ICE and DTLS are complete; the path is measured a little later. */
  #connected: Moment<"connected"> | null = null;
  readonly #of: { readonly protocol: Protocol; readonly acceptedAt: number };

  /** There are changes not stored yet. */
  isChanged = true;

  /** `acceptedAt`: epoch ms. */
  constructor(of: { readonly protocol: Protocol; readonly acceptedAt: number }) {
    this.#of = of;
  }

  note<W extends What>(at: number, what: W, figures: MomentFigures[W]): void {
    this.#seen.add(what);
    this.#moments.add(moment(at, what, figures) as Moment);
    this.isChanged = true;
  }

  /** True until all moments of the start have been observed. */
  get isStarting(): boolean {
    const awaited: readonly What[] = ["first_audio", "first_video"];
    const isConnected = this.#of.protocol === "rtmp" || (this.#connected?.figures.client ?? null) !== null;
    return !isConnected || !awaited.every((what) => this.#seen.has(what));
  }

  /** `at`: epoch ms. */
  observe(at: number, observation: Observation): void {
    this.#observed = { ...observation, snapshot: observation.snapshot ?? this.#observed?.snapshot ?? null };
    this.#start(at, observation);
    if (observation.snapshot === null) return;
    this.#media(at, observation.snapshot);
    if (observation.findings !== null) this.#troubles(at, observation.findings, observation.diagnostics);
    this.#irregularities(at, observation.snapshot);
  }

  upstream(at: number, id: string, sending: boolean, upstream: string, detail: string): void {
    const since = this.#upstreams.get(id);
    if (sending) {
      this.#upstreams.set(id, null);
      const away_ms = since == null ? null : at - since;
      this.note(at, "upstream_sending", { upstream, away_ms, after_ms: this.#after(at) });
      return;
    }
    this.#losses += 1;
    this.#upstreams.set(id, since ?? at);
    const was_sending = since === null;
    this.note(at, "upstream_lost", { upstream, was_sending, detail: detail.slice(0, WORDS_LIMIT) });
  }

  /** Oldest first, including conditions still lasting at `at`. */
  moments(at: number): readonly Moment[] {
    const open = [...this.#open.values()].map((of) => lastingUntil(of, at, false));
    const connected = this.#connected === null ? [] : [this.#connected];
    return [...connected, ...this.#moments.read(), ...this.#irregular.values(), ...open].sort((a, b) => a.at - b.at);
  }

  figures(): EndFigures {
    return {
      upstreams: Math.max(this.#observed?.snapshot?.upstreams.length ?? 0, this.#upstreams.size),
      upstreamLosses: this.#losses,
    };
  }

  #after(at: number): number {
    return Math.max(0, at - this.#of.acceptedAt);
  }

  #once<W extends What>(at: number, what: W, figures: MomentFigures[W]): void {
    if (!this.#seen.has(what)) this.note(at, what, figures);
  }

  #start(at: number, { diagnostics, isConnected }: Observation): void {
    if (this.#of.protocol === "rtmp") return;
    const { transport = null, client = null } = diagnostics ?? {};
    const path = { transport, client, after_ms: this.#after(at) };
    if (!isConnected) {
      if (client !== null && this.#connected === null) this.#once(at, "ice_connected", path);
      return;
    }
    const { at: since, figures } = this.#connected ?? moment(at, "connected", path);
    if (this.#connected !== null && (figures.client !== null || client === null)) return;
    this.#connected = moment(since, "connected", { ...figures, transport, client });
    this.isChanged = true;
  }

  #media(at: number, { tracks: { audio, video }, videoFrames, transcoderError }: PublishSnapshot): void {
    const after_ms = this.#after(at);
    if (audio !== null) {
      const { codec, sampleRate, channels } = audio;
      this.#once(at, "first_audio", { codec, sample_rate: sampleRate, channels, after_ms });
    }
    if (videoFrames > 0) {
      const { codec = null, width = null, height = null } = video ?? {};
      this.#once(at, "first_video", { codec, width, height, after_ms });
    }
    if (transcoderError !== null)
      this.#once(at, "transcoder_failed", { reason: transcoderError.slice(0, WORDS_LIMIT) });
  }

  #irregularities(at: number, { irregularities }: PublishSnapshot): void {
    for (const { code, count } of irregularities) {
      const known = this.#irregular.get(code);
      if (known?.figures.count === count) continue;
      this.#irregular.set(code, moment(known?.at ?? at, "irregular", { code, count }));
      this.isChanged = true;
    }
  }

  #troubles(at: number, findings: readonly Finding[], diagnostics: WhipDiagnostics | null): void {
    const plis = diagnostics?.video?.plis ?? 0;
    const isMissing = findings.some(({ code }) => code === "keyframes_missing");
    if (!this.#open.has("keyframes_missing") && !isMissing) this.#requestedBefore = plis;
    for (const trouble of TROUBLES) {
      const finding = findings.find(({ code }) => code === trouble);
      const value = finding?.value ?? 0;
      this.#lasts(trouble, at, finding !== undefined, finding?.since ?? at, this.#figuresOf(trouble, value, plis));
    }
  }

  /** Besides how long it lasts. `value`: of the finding. */
  #figuresOf(trouble: Trouble, value: number, plis: number): object {
    const known = (this.#open.get(trouble)?.figures ?? {}) as Readonly<Record<string, number>>;
    switch (trouble) {
      case "keyframes_missing":
        return { requested: Math.max(0, plis - this.#requestedBefore) };
      case "keyframes_rare":
        return { gop_ms: value };
      case "packet_loss":
        return { worst_percent: Math.max(value, known.worst_percent ?? 0) };
      case "audio_video_apart":
        return { worst_ms: Math.max(Math.abs(value), known.worst_ms ?? 0) };
      case "long_round_trip":
        return { worst_ms: Math.max(value, known.worst_ms ?? 0) };
      case "bitrate_fell":
      case "bitrate_limit_reached":
        return { kbps: value };
      case "frames_dropped":
        return { count: value };
      default:
        return {};
    }
  }

  /** Opens, continues or closes a lasting condition. `since`: when it began, if it is new. */
  #lasts(what: Trouble, at: number, isSo: boolean, since: number, figures: object): void {
    const open = this.#open.get(what);
    if (!isSo && open === undefined) return;
    this.isChanged = true;
    if (!isSo && open !== undefined) {
      this.#open.delete(what);
      this.#moments.add(lastingUntil(open, at, true));
      return;
    }
    const began = open?.at ?? Math.round(since);
    // `#figuresOf` has those of each.
    const all = { ...figures, lasted_ms: at - began, is_over: false } as MomentFigures[Trouble];
    this.#open.set(what, moment(began, what, all) as Moment<Trouble>);
  }
}

function lastingUntil(of: Moment<Trouble>, at: number, is_over: boolean): Moment {
  return { ...of, figures: { ...of.figures, lasted_ms: Math.round(at - of.at), is_over } } as Moment;
}
