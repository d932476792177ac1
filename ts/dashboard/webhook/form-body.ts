// The form body of a call, field by field. Pure.

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
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
