export const NOBODY: number;
export function asNobody(command: readonly [string, ...string[]], dataDir: string): [string, ...string[]];
