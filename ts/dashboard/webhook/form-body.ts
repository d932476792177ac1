// The form body of a call, field by field. Pure.

import { percentDecoded } from "../../text/percent.ts";

export interface BodyField {
  readonly position: number;
  readonly field: string;
  readonly value: string;
  /** Sent by the broadcaster; Headgate's own fields come last and begin with `call`. */
  readonly isCustom: boolean;
}

export function fieldsOf(body: string): readonly BodyField[] {
  const pairs = body.split("&").map((pair) => {
    const [field = "", ...rest] = pair.split("=");
    return { field: decoded(field), value: decoded(rest.join("=")) };
  });
  const own = pairs.findLastIndex(({ field }) => field === "call");
  return pairs.map((pair, position) => ({ position, ...pair, isCustom: position < own }));
}

/** What a broadcaster sends may not be valid text: then it is shown undecoded. */
const decoded = (text: string): string => percentDecoded(text.replaceAll("+", " ")) ?? text;
