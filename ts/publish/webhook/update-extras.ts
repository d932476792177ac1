// Fields that update_publish carries beyond the documented ones, for organisations that requested them. Measured by the
// media core; a figure that is not available (yet) is left out.
import type { PublishSnapshot, WhipDiagnostics } from "../../media.ts";
import type { UpdateField } from "../../organisation/settings.ts";

/** For one publish: keeps the counters of the last update; times in ms. `bitrate` is bit/s of audio and video from the
 *  encoder since then; `fps`, `loss` (0 to 1, of video if there is any) and `rtt` (ms) are measured by WebRTC, so RTMP has
 *  none. */
export function updateExtras(
  acceptedAt: number,
): (
  snapshot: PublishSnapshot,
  diagnostics: WhipDiagnostics | null,
  fields: readonly UpdateField[],
  now: number,
) => readonly (readonly [string, string])[] {
  let last = { bytesIn: 0, at: acceptedAt };
  return (snapshot, diagnostics, fields, now) => {
    const seconds = (now - last.at) / 1_000;
    const bytes = snapshot.bytesIn - last.bytesIn;
    last = { bytesIn: snapshot.bytesIn, at: now };
    const lossPercent = (diagnostics?.video ?? diagnostics?.audio)?.track.lossPercent;
    const values: Readonly<Record<UpdateField, number | undefined>> = {
      bitrate: seconds > 0 ? Math.max(0, Math.round((bytes * 8) / seconds)) : undefined,
      bytes_in: snapshot.bytesIn,
      bytes_out: snapshot.bytesOut,
      dropped_frames: snapshot.droppedFrames,
      fps: rounded(diagnostics?.video?.fps, 1),
      loss: rounded(lossPercent === undefined ? undefined : lossPercent / 100, 4),
      rtt: rounded(diagnostics?.rttMs, 0),
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
