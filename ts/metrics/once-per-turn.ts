// What several metrics of one scrape need.

/** All metrics of a scrape are collected in one turn of the event loop: a value that several of them need is measured
 *  once. */
export function oncePerTurn<T>(measure: () => T): () => T {
  let known: { readonly value: T } | null = null;
  return () => {
    if (known === null) {
      known = { value: measure() };
      setImmediate(() => {
        known = null;
      });
    }
    return known.value;
  };
}
