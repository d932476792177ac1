// Query and body of a request, parsed once by the zod schemas that describe them in /openapi.json, and the errors for
// invalid ones (M2, M5, M16). A constraint's message is the reason that completes "<parameter> …".
import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { InvalidValue, MalformedJson, ParameterRequired, type ServiceError, WrongDataType } from "../../errors.ts";
import { unknownMembers } from "./warnings.ts";

type Members = Readonly<Record<string, unknown>>;

/** The body parsed by `schema`, whatever its content type says (M5), and the names of the members that it ignores; no
 *  body counts as an empty object. Throws `MalformedJson`, `ParameterRequired`, `WrongDataType` or `InvalidValue`. */
export async function readBody<Schema extends z.ZodObject>(
  c: Context,
  schema: Schema,
): Promise<{ readonly body: z.output<Schema>; readonly unknown: readonly string[] }> {
  const given = jsonObject(await c.req.text());
  return { body: parsed(schema, given, "is not known"), unknown: unknownMembers(schema, given) };
}

/** The names of the members of a body, if there is one, that nobody reads. */
export async function unreadMembers(c: Context): Promise<readonly string[]> {
  try {
    return unknownMembers(z.object({}), JSON.parse(await c.req.text()));
  } catch {
    return []; // the route needs none, so it may be anything
  }
}

/** A member of a JSON body; undefined for a body that the route will refuse. */
export async function bodyMember(c: Context, name: string): Promise<unknown> {
  const text = await c.req.text();
  try {
    return jsonObject(text)[name];
  } catch {
    return undefined; // said again by the route, once its caller is authorised
  }
}

/** A parser of queries by `schema`: for a name that ends with [] every value, for others the first. It throws
 *  `WrongDataType`, or `InvalidValue`, also for a parameter that the schema does not contain (M16). Created once per
 *  route: zod compiles each schema at its first use. */
export function queryReader(schema: z.ZodObject): (c: Context) => z.output<z.ZodObject> {
  const strict = schema.strict();
  return (c) => {
    const given = Object.entries(c.req.queries());
    const members = given.map(([name, values]) => [name, name.endsWith("[]") ? values : values[0]]);
    return parsed(strict, Object.fromEntries(members), "is not a parameter of this address");
  };
}

function jsonObject(text: string): Members {
  if (text.trim() === "") return {};
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new MalformedJson("the body is not JSON", { cause });
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new WrongDataType("body", "object");
  return body as Members;
}

function parsed<Schema extends z.ZodObject>(schema: Schema, given: Members, unknown: string): z.output<Schema> {
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  const issue = ofFirstChoice(error.issues[0]);
  if (issue?.code === "unrecognized_keys") throw new InvalidValue(issue.keys[0] ?? "body", unknown);
  const name = String(issue?.path[0] ?? "body");
  throw refusalOf(issue, name, given[name], schema.shape[name]);
}

/** The issue of the first alternative of a union: the others are "or null". */
function ofFirstChoice(issue: z.core.$ZodIssue | undefined): z.core.$ZodIssue | undefined {
  const first = issue?.code === "invalid_union" ? issue.errors[0]?.[0] : undefined;
  return issue === undefined || first === undefined ? issue : { ...first, path: [...issue.path, ...first.path] };
}

function refusalOf(
  issue: z.core.$ZodIssue | undefined,
  name: string,
  value: unknown,
  member: z.core.$ZodType | undefined,
): ServiceError {
  if (issue === undefined || member === undefined) return new InvalidValue(name, "is not accepted");
  const isAbsent = value === undefined || value === null || value === "";
  if (isAbsent && !z.safeParse(member, undefined).success) return new ParameterRequired(name);
  if (issue.code === "custom" && typeof issue.params?.["type"] === "string") {
    return new WrongDataType(name, issue.params["type"]);
  }
  if (issue.code === "invalid_type") return new WrongDataType(name, typeName(member));
  if (issue.code !== "invalid_value") return new InvalidValue(name, issue.message);
  if (issue.path.length === 1 && typeof value !== "string") return new WrongDataType(name, "string");
  return new InvalidValue(name, `must be one of ${issue.values.join(", ")}`);
}

/** The name of a member's type in "Wrong Data Type". */
function typeName(schema: z.core.$ZodType): string {
  if (schema instanceof z.ZodArray) return `array of ${typeName(schema.element)}`;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return typeName(schema.unwrap());
  if (schema instanceof z.ZodPipe) return typeName(schema.in);
  if (schema instanceof z.ZodNumber) return schema.isInt ? "integer" : "number";
  return schema instanceof z.ZodEnum ? "string" : schema._zod.def.type;
}

// Building blocks of request schemas.

/** Text that the store can hold. `most`: longest text, characters, where the schema itself sets the limit. */
export function text({ most }: { readonly most?: number } = {}): z.ZodString {
  const storable = z
    .string()
    .refine((given) => !given.includes("\0"), "must not contain NUL")
    .refine((given) => given.isWellFormed(), "must be well-formed Unicode");
  if (most === undefined) return storable;
  // JSON Schema counts characters as we do; zod does not.
  return storable
    .refine((given) => [...given].length <= most, `must not be longer than ${most} characters`)
    .openapi({ maxLength: most });
}

/** The same, and required: empty text counts as missing. */
export const requiredText = (): z.ZodString => text().min(1);

/** How many entries a list returns: by default, and at most. `refusal`: the reason for rejecting a value, unless it is
 *  a matter of type. */
export interface QuantityLimits {
  readonly standard: number;
  readonly most: number;
  readonly refusal?: string;
}

/** How many entries one list returns: more than `most` counts as `most` (M10). */
export function quantity({ standard, most, refusal }: QuantityLimits) {
  return z
    .string()
    .refine((given) => /^[1-9]\d{0,8}$/.test(given), refusal ?? { params: { type: "positive integer" } })
    .transform((given) => Math.min(Number(given), most))
    .optional()
    .transform((given) => given ?? standard)
    .openapi({
      type: "integer",
      minimum: 1,
      default: standard,
      description: `Entries per page; at most ${most}`,
      example: Math.min(standard, 50),
    });
}

/** A query parameter that is an integer. `refusal`: the reason, or the name of its type. */
export function wholeNumber(refusal: string | { readonly type: string }) {
  const error = typeof refusal === "string" ? refusal : { params: refusal };
  return z
    .string()
    .refine((given) => /^\d{1,16}$/.test(given) && Number.isSafeInteger(Number(given)), error)
    .transform(Number)
    .openapi({ type: "integer", minimum: 0 });
}

/** A member that is a time (RFC 3339), parsed to epoch ms. */
export function time() {
  return text()
    .refine(isTime, { params: { type: "RFC 3339 time" } })
    .transform((given) => Date.parse(given))
    .openapi({ type: "string", format: "date-time", example: "2026-12-31T00:00:00Z" });
}

/** Query parameters of a list of what has happened. */
export function timeFilters() {
  return {
    from: time().optional().openapi({ description: "Only entries at this time or later" }),
    to: time().optional().openapi({ description: "Only entries before this time" }),
  };
}

function isTime(given: string): boolean {
  const form = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
  return form.test(given) && !Number.isNaN(Date.parse(given));
}
