// How to broadcast to a stream, with its own values, ready to be copied into a terminal or another program. Pure.
import type { Addresses } from "../streams/addresses.ts";

/** A step in a settings dialog: the place, and the value to enter there. */
export interface Step {
  readonly where: string;
  readonly value: string;
  /** Shows a button that copies the value. */
  readonly isCopied?: boolean;
}

export interface Command {
  readonly title: string;
  readonly text: string;
}

/** For OBS Studio, by RTMP. */
export function obsSteps({ server, key }: Addresses): readonly Step[] {
  return [
    { where: "Settings → Stream → Service", value: "Custom…" },
    { where: "Server", value: server, isCopied: true },
    { where: "Stream Key", value: key, isCopied: true },
    { where: "Settings → Output → Keyframe Interval", value: "2 s" },
    { where: "Settings → Output → Video Encoder", value: "H.264, 2500 kbps or more" },
  ];
}

/** For OBS Studio 30 and newer, by WHIP: half a second instead of two. */
export function obsWhipSteps({ whip }: Addresses): readonly Step[] {
  return [
    { where: "Settings → Stream → Service", value: "WHIP" },
    { where: "Server", value: whip, isCopied: true },
    { where: "Settings → Output → Keyframe Interval", value: "2 s" },
  ];
}

/** The first one runs as it is; the others send existing media. */
export function ffmpegCommands(addresses: Addresses): readonly Command[] {
  const rtmp = shellWord(addresses.rtmp);
  const encode = "-c:v libx264 -preset veryfast -tune zerolatency -g 50 -pix_fmt yuv420p -b:v 2M -c:a aac";
  return [
    {
      title: "A test pattern and a tone",
      text: `ffmpeg -re -f lavfi -i testsrc=size=1280x720:rate=25 -f lavfi -i sine=sample_rate=48000 \\\n  ${encode} \\\n  -f flv ${rtmp}`,
    },
    { title: "A file, as if it were live", text: `ffmpeg -re -i FILE \\\n  ${encode} \\\n  -f flv ${rtmp}` },
    {
      title: "By WHIP (ffmpeg 8 and newer)",
      text: `ffmpeg -re -f lavfi -i testsrc=size=1280x720:rate=25 -f lavfi -i sine=sample_rate=48000 \\\n  -c:v libx264 -profile:v baseline -bf 0 -tune zerolatency -g 50 -pix_fmt yuv420p -b:v 2M -c:a libopus -ac 2 \\\n  -f whip ${shellWord(addresses.whip)}`,
    },
  ];
}

export function gstreamerCommands(addresses: Addresses): readonly Command[] {
  const video = "videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=25/1 ! videoconvert";
  return [
    {
      title: "A test pattern and a tone",
      text: `gst-launch-1.0 flvmux name=mux streamable=true ! rtmp2sink location=${shellWord(addresses.rtmp)} \\\n  ${video} ! x264enc tune=zerolatency bitrate=2000 key-int-max=50 ! h264parse ! mux. \\\n  audiotestsrc is-live=true ! audioconvert ! avenc_aac ! aacparse ! mux.`,
    },
    {
      title: "By WHIP (with gst-plugins-rs)",
      text: `gst-launch-1.0 whipclientsink name=sink signaller::whip-endpoint=${shellWord(addresses.whip)} \\\n  ${video} ! sink. \\\n  audiotestsrc is-live=true ! audioconvert ! sink.`,
    },
  ];
}

/** Commands for watching it. */
export function playCommands({ play }: Pick<Addresses, "play">): readonly Command[] {
  return [
    { title: "ffplay", text: `ffplay -fflags nobuffer ${shellWord(play)}` },
    { title: "VLC", text: `vlc ${shellWord(play)}` },
  ];
}

/** Quotes any text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
