export const PACKAGE_LIMIT_BYTES: number;
export function contentsOf(folder: string): readonly { readonly name: string; readonly bytes: number }[];
export function faultsOfContents(folder: string, excepted?: readonly string[]): Promise<readonly string[]>;
