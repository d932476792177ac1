// The system clock. Used only where the service is put together; everything else receives a clock as an argument.

/** Epoch ms. */
export const clock = { now: () => Date.now() };
