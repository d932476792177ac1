// The columns of migration 0027: who ended a publish, and until when its stream is refused after that.

/** Of a publish; null when nobody ended it on purpose. */
export interface EndingColumns {
  /** An `EndCode` (publish/ending.ts). */
  end_code: string | null;
  /** Who asked for it: `key:ID`, `user:ID` or `operator:`. */
  end_who: string | null;
  /** The words for the broadcaster. */
  end_detail: string | null;
}

/** Of a stream; null: publishes are not refused, or no longer. */
export interface RefusalColumns {
  /** Epoch ms. */
  refused_until: number | null;
  /** The words for those broadcasters. */
  refused_reason: string | null;
}
