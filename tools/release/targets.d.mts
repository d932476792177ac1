export interface Target {
  readonly name: string;
  readonly triple: string;
  readonly cpu: "x64" | "arm64";
  readonly libc: "glibc" | "musl";
  readonly machine: number;
}
export const GLIBC: string;
export const TARGETS: readonly Target[];
export function ownTarget(): Target;
export function targetsOf(names: string | undefined): readonly Target[];
export function archiveOf(target: Target, version: string): string;
