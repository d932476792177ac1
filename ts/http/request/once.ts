// A request repeated with its Idempotency-Key gets the stored response and is not carried out again (M17).
import type { Context } from "hono";
import { InvalidValue } from "../../errors.ts";
import type { Caller } from "../../organisation/callers.ts";
import type { KeptAnswers } from "../../organisation/kept-answers.ts";

export const IDEMPOTENCY_KEY = "Idempotency-Key";
/** Longest key, characters. */
export const IDEMPOTENCY_KEY_LIMIT = 255;

/** The response of `serve`, or the stored response to the same request of the same caller. A refusal is not stored: it
 *  had no effect. */
export async function answeredOnce(
  c: Context,
  keptAnswers: KeptAnswers,
  { organisation, who }: Pick<Caller, "organisation" | "who">,
  serve: () => Response | Promise<Response>,
): Promise<Response> {
  const key = c.req.header(IDEMPOTENCY_KEY);
  // A request stored for an absent node is answered with 503, which is not worth storing; carrying it out twice has the
  // same effect as once.
  if (key === undefined || c.get("away") !== undefined) return await serve();
  if (key === "" || key.length > IDEMPOTENCY_KEY_LIMIT) {
    throw new InvalidValue(IDEMPOTENCY_KEY, `must have 1 to ${IDEMPOTENCY_KEY_LIMIT} characters`);
  }
  const { pathname, search } = new URL(c.req.url);
  const content = JSON.stringify([c.req.method, pathname, search, await c.req.text()]);
  const request = { organisationId: organisation.id, holder: `${who.kind} ${who.id}`, key, content };
  const former = await keptAnswers.begin(request);
  if (former !== null) {
    c.header("idempotency-replayed", "true");
    return c.body(former.body, former.status as 200, { "content-type": "application/json" });
  }
  let response: Response;
  try {
    response = await serve();
  } catch (error) {
    await keptAnswers.release(request);
    throw error;
  }
  await keptAnswers.keep(request, { status: response.status, body: await response.clone().text() });
  return response;
}
