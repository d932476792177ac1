// What can happen to a publish, by stable code, and the figures of each. The texts are in words.ts. Figures are
// returned as they are stored: their names are part of the API.

/** By code: the figures. `…_ms` and times are in ms; null means unknown. */
export interface MomentFigures {
  readonly requested: { readonly protocol: string | null; readonly address: string | null };
  readonly webhook_allowed: { readonly took_ms: number };
  readonly webhook_denied: { readonly status: number; readonly took_ms: number; readonly reason: string | null };
  readonly webhook_unreachable: {
    readonly cause: string;
    readonly took_ms: number;
    readonly detail: string | null;
  };
  /** `status`: the webhook's, if that denied it. */
  readonly denied: { readonly cause: string; readonly reason: string; readonly status: number | null };
  readonly accepted: { readonly has_webhook: boolean };
  readonly offer_answered: {
    /** Codecs of the offer and of our answer; "" for none. */
    readonly offered_video: string;
    readonly offered_audio: string;
    readonly video: string;
    readonly audio: string;
    /** `2 host udp, 1 srflx udp`; "" for none. */
    readonly candidates: string;
  };
  readonly ice_connected: Path;
  readonly connected: Path;
  readonly first_audio: After & {
    readonly codec: string;
    readonly sample_rate: number | null;
    readonly channels: number | null;
  };
  readonly first_video: After & {
    readonly codec: string | null;
    readonly width: number | null;
    readonly height: number | null;
  };
  readonly keyframes_missing: Lasting & { readonly requested: number };
  readonly keyframes_rare: Lasting & { readonly gop_ms: number };
  readonly video_stopped: Lasting;
  readonly silent: Lasting;
  readonly packet_loss: Lasting & { readonly worst_percent: number };
  readonly no_media: Lasting;
  readonly no_video: Lasting;
  readonly no_audio: Lasting;
  readonly audio_video_apart: Lasting & { readonly worst_ms: number };
  readonly long_round_trip: Lasting & { readonly worst_ms: number };
  readonly frame_rate_unsteady: Lasting;
  readonly bitrate_fell: Lasting & { readonly kbps: number };
  readonly bitrate_limit_reached: Lasting & { readonly kbps: number };
  readonly frames_dropped: Lasting & { readonly count: number };
  /** Something irregular about the broadcaster that was tolerated, repaired or left out; at its first occurrence. */
  readonly irregular: { readonly code: string; readonly count: number };
  readonly transcoder_failed: { readonly reason: string };
  readonly upstream_sending: After & {
    readonly upstream: string;
    /** Time since it was lost; null when it accepts the publish for the first time. */
    readonly away_ms: number | null;
  };
  readonly upstream_lost: {
    readonly upstream: string;
    /** Whether it had accepted the publish. */
    readonly was_sending: boolean;
    readonly detail: string;
  };
  readonly update_rejected: { readonly status: number; readonly took_ms: number; readonly reason: string | null };
  readonly update_unanswered: {
    readonly cause: string;
    readonly took_ms: number;
    readonly detail: string | null;
  };
  readonly running: { readonly lasted_ms: number; readonly bytes_in: number; readonly bytes_out: number };
  readonly ended: {
    readonly reason: string;
    /** Who asked for the end, an `EndCode`, and the reason for the broadcaster; absent: nobody. */
    readonly ended_by?: string;
    readonly detail?: string;
    readonly lasted_ms: number;
    readonly bytes_in: number;
    readonly bytes_out: number;
  };
  /** It took over the upstreams and players of a lost publish; on the lost one: the publish that took them over. */
  readonly continues: { readonly client_id: number };
  readonly continued: { readonly client_id: number; readonly after_ms: number };
  /** It is on standby for another publish of its stream, or took over from that; `cause`: as the media core
   *  reports it. */
  readonly stands_by: { readonly client_id: number | null; readonly cause: string };
  readonly took_over: { readonly client_id: number | null; readonly cause: string };
  readonly end_delivered: { readonly attempts: number; readonly status: number | null };
  readonly end_not_delivered: { readonly attempts: number; readonly cause: string; readonly is_given_up: boolean };
  /** Stands for moments that are not stored: how many, and of which code. */
  readonly left_out: { readonly count: number; readonly of: string };
}

/** Time since the publish was accepted. */
interface After {
  readonly after_ms: number;
}

/** The network path between the broadcaster and this service; null before it is measured. */
interface Path extends After {
  /** `udp` or `tcp`. */
  readonly transport: string | null;
  /** The broadcaster's address and port. */
  readonly client: string | null;
}

/** A condition that lasts for a while. */
interface Lasting {
  readonly lasted_ms: number;
  /** Whether it is over; false when it still lasted at the end of the publish. */
  readonly is_over: boolean;
}

export type What = keyof MomentFigures;

/** `at`: when it happened or began, epoch ms. */
export type Moment<W extends What = What> = {
  readonly [K in W]: { readonly at: number; readonly what: K; readonly figures: MomentFigures[K] };
}[W];

export function moment<W extends What>(at: number, what: W, figures: MomentFigures[W]): Moment<W> {
  return { at, what, figures } as Moment<W>;
}

/** Per code: how many moments from the beginning are kept, and how many of the newest. */
const FIRST_LIMIT = 8;
const LAST_LIMIT = 8;

/** Moments of one publish, bounded: of a frequent code those in the middle are only counted. */
export class MomentList {
  readonly #byCode = new Map<What, { first: Moment[]; last: Moment[]; leftOut: number; leftOutAt: number }>();

  add(added: Moment): void {
    const of = this.#byCode.get(added.what) ?? { first: [], last: [], leftOut: 0, leftOutAt: 0 };
    this.#byCode.set(added.what, of);
    if (of.first.length < FIRST_LIMIT) return void of.first.push(added);
    of.last.push(added);
    if (of.last.length <= LAST_LIMIT) return;
    const dropped = of.last.shift();
    if (of.leftOut === 0) of.leftOutAt = dropped?.at ?? added.at;
    of.leftOut += 1;
  }

  /** Oldest first. */
  read(): readonly Moment[] {
    const all = [...this.#byCode].flatMap(([what, { first, last, leftOut, leftOutAt }]) => [
      ...first,
      ...(leftOut === 0 ? [] : [moment(leftOutAt, "left_out", { count: leftOut, of: what })]),
      ...last,
    ]);
    return all.sort((a, b) => a.at - b.at);
  }
}
