// AAC of a recording, decoded by WebCodecs in a page (AAC registration: access units as ADTS need no description).
import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";

const AAC_SAMPLES = 1_024;

/** What WebCodecs complains about, and access units without samples. */
export async function webCodecsComplaints(page: Page, recording: string): Promise<readonly string[]> {
  const args = ["-nostdin", "-v", "error", "-i", recording, "-vn", "-c", "copy", "-f", "adts", "pipe:1"];
  const stream = execFileSync("ffmpeg", args, { maxBuffer: 1 << 26 }).toString("base64");
  const { units, samples, errors } = await page.evaluate(decodeInPage, stream);
  return samples === units * AAC_SAMPLES && units > 0 ? errors : [...errors, `${samples} samples of ${units} units`];
}

async function decodeInPage(base64: string) {
  const stream = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const byte = (at: number) => stream[at] ?? 0;
  const errors: string[] = [];
  let units = 0;
  let samples = 0;
  const decoder = new AudioDecoder({
    output(data) {
      samples += data.numberOfFrames;
      data.close();
    },
    error: (error) => errors.push(String(error)),
  });
  const numberOfChannels = ((byte(2) & 1) << 2) | (byte(3) >> 6);
  decoder.configure({ codec: "mp4a.40.2", sampleRate: 48_000, numberOfChannels });
  for (let at = 0, end = 0; at < stream.length && decoder.state === "configured"; at = end, units += 1) {
    end = at + Math.max(7, ((byte(at + 3) & 3) << 11) | (byte(at + 4) << 3) | (byte(at + 5) >> 5));
    const data = stream.subarray(at, end);
    decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: (units * 64_000) / 3, data }));
  }
  await decoder.flush().catch((error) => errors.push(String(error)));
  return { units, samples, errors };
}
