import type { Target } from "./targets.mjs";

export const ADDON_LIMIT_BYTES: number;
export function faultsOfAddon(path: string, target: Target, isOfThisMachine?: boolean): readonly string[];
export function glibcOf(bytes: Uint8Array): number | null;
