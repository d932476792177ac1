// The faults that `npm run mutants` inserts: textual, one line each, always the same for the same code.
import { expect, test } from "vitest";
import { faultsIn, inFixedOrder } from "../../tools/mutants/faults.mjs";

const CODE = `// a === b
import { a } from "./a.ts";
interface Shape {
  readonly is: true;
}
const LIMIT = 64;
function f(a: number): boolean {
  log.warn({ a }, "true");
  count += 1;
  if (a === 1 && !isOpen(a)) return false;
  return a > 2;
}
`;

const told = () =>
  faultsIn("ts/x.ts", CODE).map(
    ({ line, was, is, apply }) => `${line}: ${was} -> ${is}: ${apply(CODE).split("\n")[line - 1]}`,
  );

test("comparisons, conditions, returned values, limits and statements are changed; types, imports and logs are not", () => {
  expect(told()).toEqual([
    "6: 64 -> 3: const LIMIT = 3;",
    "9: count += 1; -> (left out): ",
    "10: === -> !==:   if (a !== 1 && !isOpen(a)) return false;",
    "10: && -> ||:   if (a === 1 || !isOpen(a)) return false;",
    "10: false -> true:   if (a === 1 && !isOpen(a)) return true;",
    "10: false -> undefined:   if (a === 1 && !isOpen(a)) return undefined;",
    "11: > -> >=:   return a >= 2;",
    "11: a > 2 -> undefined:   return undefined;",
  ]);
});

test("the order is the same each time", () => {
  const order = () => inFixedOrder(faultsIn("ts/x.ts", CODE)).map(({ line, is }) => `${line} ${is}`);
  expect(order()).toEqual(order());
  expect(order()).toHaveLength(8);
});
