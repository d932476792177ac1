// Limits concurrent name look-ups per organisation: one that uses names whose servers hang only delays itself. Where many
// do, those without a look-up under way go first.
import { PriorityQueue } from "../../capacity/priority-queue.ts";

/** Concurrent look-ups of one owner. */
const OWNER_LIMIT = 4;
/** Look-ups of one owner that may wait beyond those. */
const OWNER_WAITING_LIMIT = 32;
/** Concurrent look-ups of all owners that may have an answer at any moment. Those that take longer than
 *  `SLOW_AFTER_MS` are counted separately: names whose servers hang do not take places from names that resolve. */
const TOTAL_LIMIT = 1_024;
const SLOW_AFTER_MS = 500;
/** Concurrent look-ups of all owners in any case; each uses a socket until its time limit. */
const SOCKETS_LIMIT = 8_192;

/** Look-ups that may wait for these two limits: room is made within `SLOW_AFTER_MS`, or when look-ups end. */
const CROWD_LIMIT = 8_192;

/** The owner already has the most look-ups that may wait, or all owners together have. */
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
  /** All that run, and those of them that are not slow yet. */
  let total = 0;
  let prompt = 0;
  /** By the number of look-ups that their owner has under way. */
  const crowd = new PriorityQueue<() => void>(OWNER_LIMIT);

  const isFull = () => prompt >= TOTAL_LIMIT || total >= SOCKETS_LIMIT;

  function letIn(): void {
    while (crowd.size > 0 && !isFull()) {
      prompt += 1; // taken over by whoever is let in
      total += 1;
      crowd.shift()?.();
    }
  }

  /** Takes one that is counted in `prompt`. Returns what ends it early. */
  function enterPrompt(): () => void {
    let isOver = false;
    const leave = () => {
      clearTimeout(timer);
      if (isOver) return;
      isOver = true;
      prompt -= 1;
      letIn();
    };
    const timer = setTimeout(leave, SLOW_AFTER_MS);
    return leave;
  }

  return {
    async take(owner, work) {
      const state = owners.get(owner) ?? { running: 0, waiting: [] };
      owners.set(owner, state);
      if (state.running >= OWNER_LIMIT) {
        if (state.waiting.length >= OWNER_WAITING_LIMIT) throw new TooManyLookUps();
        // A look-up that finishes hands its slot to the next waiter, so `running` and `total` stay the same.
        await new Promise<void>((resolve) => state.waiting.push(resolve));
        prompt += 1;
      } else if (isFull()) {
        if (crowd.size >= CROWD_LIMIT) throw new TooManyLookUps();
        const { running } = state;
        state.running += 1;
        await new Promise<void>((resolve) => crowd.add(resolve, running));
      } else {
        state.running += 1;
        prompt += 1;
        total += 1;
      }
      const leavePrompt = enterPrompt();
      try {
        return await work();
      } finally {
        leavePrompt();
        const next = state.waiting.shift();
        if (next !== undefined) next();
        else {
          state.running -= 1;
          total -= 1;
          if (state.running === 0) owners.delete(owner);
          letIn();
        }
      }
    },
  };
}
