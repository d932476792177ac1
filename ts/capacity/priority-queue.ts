// What waits for its turn, by priority: the most urgent first, and in order of arrival within a priority.

export class PriorityQueue<T> {
  /** By priority; 0 is the most urgent. */
  readonly #levels: readonly Set<T>[];

  constructor(levels: number) {
    this.#levels = Array.from({ length: levels }, () => new Set<T>());
  }

  get size(): number {
    return this.#levels.reduce((sum, level) => sum + level.size, 0);
  }

  add(item: T, priority: number): void {
    this.#levels[Math.min(priority, this.#levels.length - 1)]?.add(item);
  }

  /** False when it is not waiting. */
  delete(item: T): boolean {
    return this.#levels.some((level) => level.delete(item));
  }

  /** Removes and returns the next one. */
  shift(): T | undefined {
    const [first] = this;
    if (first !== undefined) this.delete(first);
    return first;
  }

  /** Removes and returns the one that has waited longest of the least urgent ones, if they are less urgent than
   *  `priority`. */
  displace(priority: number): T | undefined {
    const lowest = this.#levels.findLastIndex((level) => level.size > 0);
    if (lowest <= priority) return undefined;
    const [oldest] = this.#levels[lowest] ?? [];
    if (oldest !== undefined) this.delete(oldest);
    return oldest;
  }

  /** In their order. */
  *[Symbol.iterator](): Generator<T> {
    for (const level of this.#levels) yield* level;
  }
}
