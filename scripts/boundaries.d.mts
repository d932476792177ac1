export function violations(root: string): readonly string[];
