// How loud a microphone is, as a bar: in decibels below full scale, since ears hear ratios.

/** What counts as silence, dBFS. */
const FLOOR_DB = -60;
/** Above it the sound is about to be clipped, dBFS. */
const LOUD_DB = -3;

export interface Level {
  /** 0 to 1, linear in decibels. */
  readonly level: number;
  readonly isLoud: boolean;
}

/** The level of samples between −1 and 1, by their peak. */
export function levelOf(samples: Float32Array): Level {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  const decibels = peak === 0 ? FLOOR_DB : 20 * Math.log10(peak);
  return { level: Math.min(Math.max(1 - decibels / FLOOR_DB, 0), 1), isLoud: decibels > LOUD_DB };
}
