// Short names for the API's records of a stream and its publishes, and for the contents of the event streams.
import type { Records } from "../../client/index.ts";

export type Stream = Records["Stream"];
export type StreamState = Stream["state"];
export type Session = Records["SessionWithDiagnostics"];
export type SessionUpstream = Records["SessionUpstream"];
export type StreamUpstream = Records["Upstream"];
export type Publish = Records["Publish"];
/** What is wrong with a running publish. */
export type Finding = Records["SessionFinding"];

/** One live publish in the events of the organisation. */
export interface LiveRow {
  readonly client_id: number;
  /** Id of its stream. */
  readonly stream: string;
  readonly streamname: string;
  readonly protocol: "rtmp" | "whip";
  /** False: it is on standby. */
  readonly on_air: boolean;
  readonly accepted_at: string;
  readonly bitrate_kbps: number | null;
  readonly fps: number | null;
  readonly video: { readonly codec: string; readonly width: number | null; readonly height: number | null } | null;
  readonly audio: { readonly codec: string } | null;
  readonly players: number;
  readonly upstreams: { readonly connected: number; readonly failing: number };
  readonly loss_percent: number | null;
  readonly rtt_ms: number | null;
  readonly condition: "good" | "attention" | "bad";
  /** The worst first; nodes of older versions report none. */
  readonly findings?: readonly Finding[];
}

/** How many streams are in each state. */
export type Counts = Readonly<Record<"created" | "live" | "ended" | "locked", number>>;

/** Measurements of a running publish; null where unknown. */
export interface Numbers {
  readonly bitrate_kbps: number | null;
  readonly fps: number | null;
  readonly gop_ms: number | null;
  readonly loss_percent: number | null;
  readonly rtt_ms: number | null;
  readonly skew_ms: number | null;
}

/** The name by which people and encoders know the stream. */
export const nameOf = (stream: Stream): string => stream.ingest.rtmp.streamname;
