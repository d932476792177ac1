// What makes a good stream: order, start, bytes.
import type { Packet } from "./ffmpeg.ts";

export const tracks = ["video", "audio"] as const;

export function ofTrack(packets: readonly Packet[], track: Packet["track"]): readonly Packet[] {
  return packets.filter((packet) => packet.track === track);
}

/** Whether decode timestamps never go back within a track. */
export function isMonotonic(packets: readonly Packet[]): boolean {
  return tracks.every((track) => {
    const times = ofTrack(packets, track).map((packet) => packet.dts);
    return times.every((time, at) => at === 0 || time >= (times[at - 1] ?? 0));
  });
}

export function startsAtKeyframe(packets: readonly Packet[]): boolean {
  return ofTrack(packets, "video")[0]?.isKey === true;
}

/** Audio and video payload in bytes. */
export function payloadBytes(packets: readonly Packet[]): number {
  return packets.reduce((sum, packet) => sum + packet.bytes, 0);
}

/** The packets of each track in a form that can be compared between two places: timestamp and content. */
export function content(packets: readonly Packet[]): Record<Packet["track"], readonly string[]> {
  const lines = (track: Packet["track"]) =>
    ofTrack(packets, track).map(({ dts, bytes, hash }) => `${dts} ${bytes} ${hash}`);
  return { video: lines("video"), audio: lines("audio") };
}
