// How the nodes that remain split the work that a departed one left behind.

/** The part of one of them: what belongs to a client id that, modulo `of`, is `index`. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

export const EVERYTHING: Share = { index: 0, of: 1 };
