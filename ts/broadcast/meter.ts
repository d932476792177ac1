// Listens to a microphone and shows its level, as often as the page is drawn.
import { type Level, levelOf } from "./level.ts";

/** How fast the bar falls back, of its whole length for each frame of the page: a peak is seen before it is gone. */
const FALL = 0.015;
/** Samples that are looked at for each frame of the page. */
const WINDOW = 2_048;

/** Shows the level of an audio track until the returned function is called. */
export function startMeter(track: MediaStreamTrack, show: (level: Level) => void): () => void {
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, { fftSize: WINDOW });
  const source = context.createMediaStreamSource(new MediaStream([track]));
  source.connect(analyser);
  const samples = new Float32Array(WINDOW);
  let shown = 0;
  let frame = requestAnimationFrame(read);
  function read(): void {
    analyser.getFloatTimeDomainData(samples);
    const now = levelOf(samples);
    shown = Math.max(now.level, shown - FALL);
    show({ ...now, level: shown });
    frame = requestAnimationFrame(read);
  }
  return () => {
    cancelAnimationFrame(frame);
    source.disconnect();
    void context.close();
    show({ level: 0, isLoud: false });
  };
}
