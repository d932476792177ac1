// Set-ups of publishes, one in each turn of the event loop: a crowd that comes at once goes through in its order, and whoever is
// refused, and everybody else, is answered between them. A set-up takes several milliseconds of the loop in all.

export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  #isTurning = false;

  /** Set-ups that have not begun. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when it is the turn of one more. */
  pass(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#isTurning) return;
      this.#isTurning = true;
      this.#turn();
    });
  }

  readonly #turn = (): void => {
    const begin = this.#waiting.shift();
    this.#isTurning = begin !== undefined;
    if (begin === undefined) return;
    begin();
    setImmediate(this.#turn);
  };
}
