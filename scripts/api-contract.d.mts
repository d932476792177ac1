export function contractOf(document: object): string[];
export function contractText(lines: readonly string[]): string;
export function contractLines(text: string): string[];
