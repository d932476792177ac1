/** One change of one line. */
export interface Fault {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly was: string;
  readonly is: string;
  apply(whole: string): string;
}

export const FOLDERS: readonly string[];
export function faultsIn(file: string, text: string): Fault[];
export function inFixedOrder(faults: readonly Fault[]): Fault[];
