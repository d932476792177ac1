export function providePython(): string;
