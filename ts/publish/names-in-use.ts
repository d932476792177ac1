// Which stream names are live or being decided, in this process (W20). No I/O, no policy.
import { inTime } from "../in-time.ts";
import { step } from "../step-times.ts";

interface Use {
  /** Client id of the running publish, null while the first one is being decided. */
  live: number | null;
  /** Another publish request of this name is being decided. */
  pending: boolean;
  /** Called when the running publish has ended. */
  ended: (() => void)[];
  /** Settles when the end of the last one is in the store, or could not be put there. */
  recorded: Promise<unknown>;
}

/** Invariant: at most one pending request and one running publish per name. */
export class NamesInUse {
  readonly #uses = new Map<string, Use>();

  /** Client id of the running publish of `name`, or null. */
  live(name: string): number | null {
    return this.#uses.get(name)?.live ?? null;
  }

  /** Reserves `name` for one request; false when another one has it. Give it back with `release` or `settle`. */
  reserve(name: string): boolean {
    const use = this.#uses.get(name);
    if (use === undefined) {
      this.#uses.set(name, { live: null, pending: true, ended: [], recorded: Promise.resolve() });
      return true;
    }
    if (use.pending) return false;
    use.pending = true;
    return true;
  }

  /** The reserving request was denied; a running publish of the name is untouched. */
  release(name: string): void {
    const use = this.#uses.get(name);
    if (use === undefined) return;
    use.pending = false;
    if (use.live === null) this.#uses.delete(name); // an end that is still being recorded was waited for
  }

  /** The reserving request was allowed and runs as `clientId`. */
  settle(name: string, clientId: number): void {
    this.#uses.set(name, { live: clientId, pending: false, ended: [], recorded: Promise.resolve() });
  }

  /** The publish `clientId` of `name` has ended; nothing happens when another one runs by now. `recorded`: settles when
   *  the store has its end. */
  end(name: string, clientId: number, recorded: Promise<unknown>): void {
    const use = this.#uses.get(name);
    if (use?.live !== clientId) return;
    use.live = null;
    use.recorded = recorded;
    for (const ended of use.ended.splice(0)) ended();
    const forget = () => {
      if (this.#uses.get(name) === use && use.live === null && !use.pending) this.#uses.delete(name);
    };
    recorded.then(forget, forget);
  }

  /** Resolves when the end of the last publish of `name` is in the store, or could not be put there. */
  async recorded(name: string): Promise<void> {
    await this.#uses.get(name)?.recorded.catch(() => {});
  }

  /** Resolves when no publish of `name` runs any more, or after `limitMs`. */
  async ended(name: string, limitMs: number): Promise<void> {
    const use = this.#uses.get(name);
    if (use === undefined || use.live === null) return;
    const replaced = new Promise<void>((resolve) => use.ended.push(resolve));
    await step("replaced", () => inTime(limitMs, replaced, undefined));
  }
}
