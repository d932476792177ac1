export function repetitions(root: string): readonly string[];
