// The tones in which a state is shown.
export type Tone = "good" | "attention" | "bad" | "live" | "quiet";
