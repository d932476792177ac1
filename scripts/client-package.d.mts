export function packClient(folder: string): string;
export function pack(packageFolders: readonly string[], into: string): string[];
