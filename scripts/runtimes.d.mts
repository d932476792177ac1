// What runtimes.mjs gives.

/** The programs that the service is tested on, in the order in which they are. */
export const RUNTIME_NAMES: readonly string[];
/** Sees that one of them is there; the words of a command line that stand before the name of a script. Throws when there
 *  is none for this machine, or what came is not what was pinned. */
export function provideRuntime(name: string): readonly string[];
