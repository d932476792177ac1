// The only wait of tests for a duration instead of a state: where the duration is what is tested, or nothing can be
// awaited. test/repository/fixed-waits.test.ts counts them, and wants the reason on the line of each.

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
