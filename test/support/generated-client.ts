// A program that uses a client generated from /openapi.json: runs it against a gateway and collects its results.
import { join } from "node:path";
import { expect } from "vitest";
import { start } from "./child.ts";
import type { Customer } from "./customer.ts";
import type { Headgate } from "./headgate.ts";

const OFFER = "test/fixtures/offers/chromium-156.sdp";

/** One answer: its route, its body, and what the generated types made of it; null if it is not JSON. */
interface Told {
  readonly operation: string;
  readonly status: number;
  readonly body: unknown;
  readonly decoded: unknown;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
}

/** Runs the program to its end; the offer is its standard input. */
export async function runProgram(
  [command, ...args]: readonly [string, ...string[]],
  folder: string,
  { headgate, customer }: { readonly headgate: Headgate; readonly customer: Customer },
): Promise<readonly Told[]> {
  const env = {
    PATH: process.env.PATH,
    GATEWAY_URL: headgate.http,
    GATEWAY_KEY: headgate.apiKey,
    RTMP_URL: headgate.rtmp,
    WEBHOOK_URL: customer.url,
  };
  const offer = join(process.cwd(), OFFER);
  const program = start("sh", ["-c", 'exec "$@" < "$OFFER"', "sh", command, ...args], {
    cwd: folder,
    env: { ...env, OFFER: offer },
  });
  const code = await program.exit;
  expect(code, program.stderr()).toBe(0);
  return program
    .stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Told);
}

/** Checks that the program got an answer of every route of the document except those listed, and that the gateway's
 *  log shows each. */
export async function expectEveryRoute(
  told: readonly Told[],
  headgate: Headgate,
  unreachable: readonly string[],
): Promise<void> {
  const document = (await (await fetch(`${headgate.http}/openapi.json`)).json()) as Document;
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      route: `${method.toUpperCase()} ${path}`,
      operationId,
    })),
  );
  const meant = routes.filter(({ operationId }) => !unreachable.includes(operationId));
  expect(meant.length).toBe(routes.length - unreachable.length);
  const succeeded = told.filter(({ status }) => status < 300).map(({ operation }) => plainName(operation));
  expect(meant.map(({ operationId }) => operationId).filter((id) => !succeeded.includes(plainName(id)))).toEqual([]);

  const logged = requestsIn(`${headgate.process.stdout()}\n${headgate.process.stderr()}`);
  expect(meant.map(({ route }) => route).filter((route) => !logged.has(route))).toEqual([]);
}

/** Every request in the log, as `GET /stream/{id}`. */
function requestsIn(log: string): ReadonlySet<string> {
  const lines = log.split("\n").filter((line) => line.includes('"msg":"request answered"'));
  const requests = lines.map((line) => JSON.parse(line) as { readonly method: string; readonly route: string });
  return new Set(requests.map(({ method, route }) => `${method} ${route.replaceAll(/:(\w+)/g, "{$1}")}`));
}

/** Generators spell the names of routes in the style of their language. */
const plainName = (name: string) => name.replaceAll("_", "").toLowerCase();

/** Checks that what the types made of a body equals the body: every member with its value. */
export function expectDecoded(told: readonly Told[]): void {
  for (const { operation, body, decoded } of told) {
    if (plainName(operation) === "getopenapijson") continue; // the document itself, which has no fixed type
    expect(withoutForms(decoded), operation).toEqual(withoutForms(body));
  }
}

/** Times have several forms; a member that is null may be left out. */
function withoutForms(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutForms);
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== null);
    return Object.fromEntries(members.map(([name, member]) => [name, withoutForms(member)]));
  }
  const isTime = typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(value);
  return isTime ? Date.parse(value) : value;
}
