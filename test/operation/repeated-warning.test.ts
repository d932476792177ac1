// A full disk costs one line of the log for each thing that is tried again and again, however long it lasts.
import { expect, test } from "vitest";
import { repeatedWarning } from "../../ts/limits/repeated-warning.ts";

test("a failure that lasts is said once, and again when it has worked meanwhile", async () => {
  const said: string[] = [];
  const warning = repeatedWarning({ warn: (_: object, words = "") => void said.push(words) }, "not written");
  const fail = () => Promise.reject(new Error("full"));
  await warning.around(fail);
  await warning.around(fail);
  expect(said).toEqual(["not written"]);
  await warning.around(async () => {});
  await warning.around(fail);
  expect(said).toHaveLength(2);
});
