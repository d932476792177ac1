// How many look-ups of names an organisation may have at a time: one that brings names whose servers hang waits for
// itself.

/** Of one owner at a time. */
const OWNER_LIMIT = 4;
/** Of one owner, waiting for those. */
const OWNER_WAITING_LIMIT = 32;
/** Of all owners at a time; each is a socket. */
const TOTAL_LIMIT = 1_024;

/** More look-ups at once than are let wait. */
export class TooManyLookUps extends Error {
  readonly code = "ETOOMANYLOOKUPS";
  constructor() {
    super("too many names are being resolved");
    this.name = "TooManyLookUps";
  }
}

export interface Turns {
  /** Runs `work` when it is the owner's turn. Rejects with `TooManyLookUps`. */
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
        // Who leaves hands its place over, so that `running` stays.
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
