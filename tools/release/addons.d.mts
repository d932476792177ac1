import type { Target } from "./targets.mjs";

export function provideAddons(target: Target): (name: string) => string;
