// The words of a command line: a required one, and an unknown one.
import { ConfigInvalid } from "../errors.ts";
import type { GivenFlags } from "./flags.ts";

/** A required word. Throws `ConfigInvalid` that names what is missing. */
export function wanted(word: string | undefined, what: string): string {
  if (word === undefined || word === "") throw new ConfigInvalid(`${what} is missing`);
  return word;
}

/** The error for a verb that a command does not have. */
export function unknownVerb(command: string, verb: string | undefined, verbs: readonly string[]): ConfigInvalid {
  const known = verbs.map((each) => `headgate ${command} ${each}`).join(", ");
  if (verb === undefined) return new ConfigInvalid(`${command} needs a further word: ${known}`);
  return new ConfigInvalid(`${command} ${verb} is not known: ${known}`);
}

/** How much of a list was asked for. Throws `ConfigInvalid`. */
export function quantityOf({ quantity, all }: GivenFlags, standard: number): { readonly quantity: number } {
  if (all === true) return { quantity: Number.POSITIVE_INFINITY };
  if (quantity === undefined) return { quantity: standard };
  if (typeof quantity === "number" && Number.isSafeInteger(quantity) && quantity >= 1) return { quantity };
  throw new ConfigInvalid("--quantity must be a whole number of at least 1");
}

/** A time given with a flag, epoch ms; null without it. Throws `ConfigInvalid`. */
export function timeOf(flag: string, given: unknown): number | null {
  if (typeof given !== "string") return null;
  const ms = Date.parse(given);
  if (Number.isNaN(ms)) throw new ConfigInvalid(`--${flag} must be a time such as 2026-01-31T14:00:00Z`);
  return ms;
}
