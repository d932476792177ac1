// Members of a body that its route does not know are ignored (M8), and the answer names them in `warnings`, so that a
// misspelled member is noticed.
import { z } from "zod";

/** Most names in one answer, and characters of each. */
const NAMES_LIMIT = 20;
const NAME_LIMIT = 64;

/** Whether answers to this method name what was ignored. */
export const isWarned = (method: string): boolean => method === "POST" || method === "PUT";

/** The member of the answer, in the OpenAPI document. */
export const WARNINGS = {
  type: "array",
  items: { type: "string" },
  maxItems: NAMES_LIMIT,
  description:
    "In the answer to a POST or PUT whose body has members that the route does not know, and ignores: their names, at " +
    `most ${NAMES_LIMIT}, each cut after ${NAME_LIMIT} characters; nested ones as \`outer.inner\` and \`list[].inner\``,
  example: ["titel"],
} as const;

/** The names of the members of `given` that the schema does not contain, also within its objects and lists of objects. */
export function unknownMembers(schema: z.core.$ZodType, given: unknown): readonly string[] {
  const names = new Set<string>();
  for (const name of unknownIn(schema, given, "")) {
    names.add([...name].slice(0, NAME_LIMIT).join("").toWellFormed());
    if (names.size === NAMES_LIMIT) break;
  }
  return [...names];
}

function* unknownIn(schema: z.core.$ZodType, given: unknown, parent: string): Generator<string> {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    yield* unknownIn(schema.unwrap(), given, parent);
  } else if (schema instanceof z.ZodPipe) {
    yield* unknownIn(schema.in, given, parent);
  } else if (schema instanceof z.ZodArray && Array.isArray(given)) {
    for (const each of given) yield* unknownIn(schema.element, each, `${parent}[]`);
  } else if (schema instanceof z.ZodObject && isMembers(given)) {
    for (const [name, value] of Object.entries(given)) {
      const path = parent === "" ? name : `${parent}.${name}`;
      if (Object.hasOwn(schema.shape, name)) yield* unknownIn(schema.shape[name], value, path);
      else yield path;
    }
  }
}

/** The answer with the names, if there are any and it is a JSON object. */
export async function withWarnings(answer: Response, names: readonly string[]): Promise<Response> {
  if (names.length === 0 || !answer.ok || !/^application\/json\b/.test(answer.headers.get("content-type") ?? "")) {
    return answer;
  }
  const body: unknown = await answer.json();
  const headers = new Headers(answer.headers);
  headers.delete("content-length");
  return new Response(JSON.stringify(isMembers(body) ? { ...body, warnings: names } : body), {
    status: answer.status,
    headers,
  });
}

function isMembers(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
