// The words of a command line: one that must be there, and one that nobody knows.
import { ConfigInvalid } from "../errors.ts";

/** A word that must be there. Throws `ConfigInvalid` with what is missing. */
export function wanted(word: string | undefined, what: string): string {
  if (word === undefined || word === "") throw new ConfigInvalid(`${what} is missing`);
  return word;
}

/** For a verb that a command does not have. */
export function unknownVerb(command: string, verb: string | undefined, verbs: readonly string[]): ConfigInvalid {
  const known = verbs.map((each) => `headgate ${command} ${each}`).join(", ");
  if (verb === undefined) return new ConfigInvalid(`${command} needs a further word: ${known}`);
  return new ConfigInvalid(`${command} ${verb} is not known: ${known}`);
}
