export function undefinedDecisions(files: readonly { readonly name: string; readonly text: string }[]): string[];
export function missingPages(files: readonly { readonly name: string; readonly text: string }[]): string[];
