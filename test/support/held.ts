// Something that waits until the test releases it.

/** A promise that resolves when the test calls `release`. */
export function held(): { readonly promise: Promise<void>; readonly release: () => void } {
  let release = () => {};
  const promise = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { promise, release };
}
