export const INSTALL: readonly string[];
export function installPackage(options: {
  readonly archive: string;
  readonly tree: string;
  readonly scratch: string;
  readonly more?: readonly string[];
}): {
  readonly code: number;
  readonly said: string;
  readonly asked: readonly string[];
  readonly tookMs: number;
};
