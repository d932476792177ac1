// What `--reason` and `--refuse` say about the end of a publish.
import { ConfigInvalid } from "../../errors.ts";
import type { GivenFlags } from "../flags.ts";

export interface End {
  readonly reason?: string;
  readonly refuse_s?: number;
}

/** The body of the request that ends a publish; undefined when neither flag is given. Throws `ConfigInvalid`. */
export function endOf(flags: GivenFlags): End | undefined {
  const { reason, refuse } = flags;
  if (typeof reason !== "string" && typeof refuse !== "number") return undefined;
  if (typeof refuse === "number" && !(Number.isSafeInteger(refuse) && refuse >= 0))
    throw new ConfigInvalid(`--refuse must be a number of seconds, not ${refuse}`);
  return {
    ...(typeof reason === "string" && { reason }),
    ...(typeof refuse === "number" && { refuse_s: refuse }),
  };
}

export const refusedWords = ({ refuse_s: seconds = 0 }: End): string =>
  seconds > 0 ? `, and new publishes are refused for ${seconds} s` : "; encoders may publish again";
