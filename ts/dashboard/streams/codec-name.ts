// The usual names of codecs. Pure.

/** "h264" in its usual form, "H.264". */
export function codecName(codec: string): string {
  const names: Readonly<Record<string, string>> = {
    h264: "H.264",
    hevc: "HEVC",
    h265: "HEVC",
    aac: "AAC",
    mp3: "MP3",
    opus: "Opus",
  };
  return names[codec] ?? (codec.length <= 4 ? codec.toUpperCase() : codec);
}
