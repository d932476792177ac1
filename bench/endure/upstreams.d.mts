/** Runs at a share of the full volume, 0 to 1; `faults` are texts, empty if everything held. */
export function endure(share: number): Promise<{ figures: object; faults: string[] }>;
