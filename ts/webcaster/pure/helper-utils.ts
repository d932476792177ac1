// Units and small functions that pages of deployed clients call by these names; this package does not use them. Pure.

const by = <T>(items: readonly T[], value: (item: T) => number, isBetter: (a: number, b: number) => boolean) =>
  items.reduce<T | undefined>(
    (best, item) => (best === undefined || isBetter(value(item), value(best)) ? item : best),
    undefined,
  );

export const HelperUtils = {
  /** Kilobits per second as bits per second. */
  kbps: (rateKbps: number): number => rateKbps * 1_000,
  /** Megabits per second as bits per second. */
  mbps: (rateMbps: number): number => rateMbps * 1_000_000,
  msToSecs: (millis: number): number => millis / 1_000,
  roundToPrecision: (value: number, digits = 0): number => Number(value.toFixed(digits)),
  /** Resolves after this many milliseconds. */
  wait: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
  prettyPrintJson: (value: unknown): string => JSON.stringify(value, null, 2),
  /** A deep copy through JSON. */
  cloneSerializable: <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T,
  isEmpty: (value: object): boolean => Object.keys(value).length === 0,
  isBoolean: (value: unknown): value is boolean => typeof value === "boolean",
  isUndefined: (value: unknown): value is undefined => value === undefined,
  isDefined: (value: unknown): boolean => value !== undefined,
  isNumber: (value: unknown): value is number => typeof value === "number",
  isObject: (value: unknown): value is object => typeof value === "object" && value !== null,
  isString: (value: unknown): value is string => typeof value === "string",
  orNull: <T>(value?: T): T | null => value ?? null,
  orZero: (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0),
  minBy: <T>(items: readonly T[], value: (item: T) => number): T | undefined => by(items, value, (a, b) => a < b),
  maxBy: <T>(items: readonly T[], value: (item: T) => number): T | undefined => by(items, value, (a, b) => a > b),
  meanBy: <T>(items: readonly T[], value: (item: T) => number): number =>
    items.reduce((sum, item) => sum + value(item), 0) / items.length,
  noop: (): undefined => undefined,
};
