// Limits concurrent name look-ups per organisation: one that uses names whose servers hang only delays itself.

/** Concurrent look-ups of one owner. */
const OWNER_LIMIT = 4;
/** Look-ups of one owner that may wait beyond those. */
const OWNER_WAITING_LIMIT = 32;
/** Concurrent look-ups of all owners; each uses a socket. */
const TOTAL_LIMIT = 1_024;

/** The owner already has the most look-ups that may wait. */
export class TooManyLookUps extends Error {
  readonly code = "ETOOMANYLOOKUPS";
  constructor() {
    super("too many names are being resolved");
    this.name = "TooManyLookUps";
  }
}

export interface Turns {
  /** Runs `work` when it is the owner's turn. Rejects with `TooManyLookUps` when too many already wait. */
  take<T>(owner: string, work: () => Promise<T>): Promise<T>;
}

export function createTurns(): Turns {
  const owners = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  let total = 0;

  return {
    async take(owner, work) {
      const state = owners.get(owner) ?? { running: 0, waiting: [] };
      owners.set(owner, state);
      if (state.running >= OWNER_LIMIT) {
        if (state.waiting.length >= OWNER_WAITING_LIMIT) throw new TooManyLookUps();
        // A look-up that finishes hands its slot to the next waiter, so `running` stays the same.
        await new Promise<void>((resolve) => state.waiting.push(resolve));
      } else if (total >= TOTAL_LIMIT) {
        throw new TooManyLookUps();
      } else {
        state.running += 1;
        total += 1;
      }
      try {
        return await work();
      } finally {
        const next = state.waiting.shift();
        if (next !== undefined) next();
        else {
          state.running -= 1;
          total -= 1;
          if (state.running === 0) owners.delete(owner);
        }
      }
    },
  };
}
