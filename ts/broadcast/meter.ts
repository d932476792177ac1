// Measures a microphone and shows its level in every animation frame.
import { type Level, levelOf } from "./level.ts";

/** How far the bar falls per animation frame, as a share of its length: slowly enough that peaks are seen. */
const FALL = 0.015;
/** Samples analysed in each animation frame. */
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
