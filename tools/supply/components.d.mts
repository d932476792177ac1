export interface Component {
  readonly kind: "cargo" | "npm";
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly isFromRegistry: boolean;
  readonly checksum: string | null;
  readonly folder: string | null;
}
export function components(): readonly Component[];
