import type { Target } from "./targets.mjs";

export function installRelease(options: {
  readonly release: string;
  readonly tree: string;
  readonly scratch: string;
  readonly target: Target;
  readonly elsewhere?: string | null;
}): Promise<readonly string[]>;
