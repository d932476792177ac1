// What update_publish tells beside the documented fields, for organisations that asked for it. Measured by the media
// core; a figure that it does not have (yet) is left out.
import type { PublishSnapshot } from "../media.ts";
import type { UpdateField } from "../organisation/settings.ts";

/** Every figure there is. */
export const UPDATE_FIELDS: readonly UpdateField[] = [
  "bitrate",
  "bytes_in",
  "bytes_out",
  "dropped_frames",
  "fps",
  "loss",
  "rtt",
];

/** Figures of later media cores; absent in a snapshot that has none. */
type Snapshot = PublishSnapshot & {
  /** Video frames per second. */
  readonly fps?: number;
  /** Share of packets lost on the way in, 0 to 1. */
  readonly loss?: number;
  /** Milliseconds. */
  readonly rttMs?: number;
};

/** For one publish: remembers what the last update counted. `bitrate` is bit/s of audio and video from the encoder
 *  since then. */
export function updateExtras(
  acceptedAt: number,
): (snapshot: Snapshot, fields: readonly UpdateField[], now: number) => readonly (readonly [string, string])[] {
  let last = { bytesIn: 0, at: acceptedAt };
  return (snapshot, fields, now) => {
    const seconds = (now - last.at) / 1_000;
    const bytes = snapshot.bytesIn - last.bytesIn;
    last = { bytesIn: snapshot.bytesIn, at: now };
    const values: Readonly<Record<UpdateField, number | undefined>> = {
      bitrate: seconds > 0 ? Math.max(0, Math.round((bytes * 8) / seconds)) : undefined,
      bytes_in: snapshot.bytesIn,
      bytes_out: snapshot.bytesOut,
      dropped_frames: snapshot.droppedFrames,
      fps: rounded(snapshot.fps, 1),
      loss: rounded(snapshot.loss, 4),
      rtt: rounded(snapshot.rttMs, 0),
    };
    return fields.flatMap((field) => {
      const value = values[field];
      return value === undefined ? [] : [[field, String(value)] as const];
    });
  };
}

function rounded(value: number | undefined, digits: number): number | undefined {
  return value === undefined ? undefined : Number(value.toFixed(digits));
}
