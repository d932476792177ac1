// The tones in which a state is displayed.
export type Tone = "good" | "attention" | "bad" | "live" | "quiet";
