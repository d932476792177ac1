/** At a share of its full volume, 0 to 1; faults in words, none when it held. */
export function endure(share: number): Promise<{ figures: object; faults: string[] }>;
