import type { Target } from "./targets.mjs";

export const CORE: string;
export function makeService(
  folder: string,
  options: {
    readonly target: Target;
    readonly core: string;
    readonly addons: (name: string) => string;
    readonly commit: string | null;
  },
): void;
