export function faultsOfNames(folder: string): Promise<readonly string[]>;
