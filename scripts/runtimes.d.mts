// Types of runtimes.mjs.

/** The runtimes that the service is tested on, in the order of the tests. */
export const RUNTIME_NAMES: readonly string[];
/** Provides a runtime; returns the part of a command line that precedes the name of a script. Throws if there is
 *  none for this machine, or the download does not match the pin. */
export function provideRuntime(name: string): readonly string[];
