// The clock of the system. Only what starts things takes it from here; everything else is given one.

/** Epoch ms. */
export const clock = { now: () => Date.now() };
