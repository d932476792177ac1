// Limits how much work of one kind is done at the same time. In a crowd, every turn of the event loop then stays short,
// so that other requests are answered meanwhile.

/** Work counts for at most this long, ms: what waits for something else must not keep others out. */
const COUNTED_MS = 50;

type Begin = (leave: () => void) => void;

export class Slots {
  readonly #limit: number;
  readonly #urgent: Begin[] = [];
  readonly #waiting: Begin[] = [];
  #busy = 0;

  /** `limit`: how many work at the same time. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many have not begun. */
  get waiting(): number {
    return this.#urgent.length + this.#waiting.length;
  }

  /** Resolves in a later turn of the event loop, in order of arrival and urgent work first, with the function to call
   *  when the work is done. */
  enter(isUrgent = false): Promise<() => void> {
    return new Promise((begin) => {
      (isUrgent ? this.#urgent : this.#waiting).push(begin);
      this.#next();
    });
  }

  #next(): void {
    if (this.#busy >= this.#limit) return;
    const begin = this.#urgent.shift() ?? this.#waiting.shift();
    if (begin === undefined) return;
    this.#busy += 1;
    setImmediate(() => {
      const leave = () => {
        if (timer === null) return;
        clearTimeout(timer);
        timer = null;
        this.#busy -= 1;
        this.#next();
      };
      let timer: NodeJS.Timeout | null = setTimeout(leave, COUNTED_MS).unref();
      begin(leave);
    });
  }
}
