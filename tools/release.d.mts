export interface ReleasedPackage {
  readonly name: string;
  readonly contents: readonly { readonly name: string; readonly bytes: number }[];
  readonly archive: string;
}
export function release(options?: {
  readonly into?: string;
  readonly targets?: string;
  readonly built?: boolean;
}): Promise<readonly ReleasedPackage[]>;
