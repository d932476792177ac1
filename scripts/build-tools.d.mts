export function realCmake(path?: string): string | null;
export function pathWithoutShims(folder: string, path?: string): string;
