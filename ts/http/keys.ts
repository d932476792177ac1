// /organisation/key: API keys of an organisation (M15). Administrators only; a key's text appears only in the response
// that creates it.
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import {
  addApiKey,
  checkRoomForKey,
  KEYS_LIMIT,
  listApiKeys,
  revokeApiKey,
  rotateApiKey,
} from "../organisation/api-keys.ts";
import { changed } from "../organisation/audit.ts";
import { TAG_LENGTH_LIMIT } from "../organisation/streams.ts";
import type { ApiKeyTable, Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, Role, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { text, time } from "./request/schema.ts";

/** Longest label, characters. */
const LABEL_LIMIT = 100;
/** Of one page: as many as an organisation may have. */
const QUANTITY = { standard: KEYS_LIMIT, most: KEYS_LIMIT } as const;
const Page = cursorOf("key", z.tuple([z.int(), text()]));

const keyShape = {
  id: z.string().openapi({ description: "The part of the key after hg_", example: "k3Jd92Lm" }),
  label: z.string().nullable(),
  role: Role,
  scope_tag: z.string().nullable().openapi({ description: "The key can see and create only streams with this tag" }),
  created_at: Time,
  expires_at: Time.nullable(),
  last_used_at: Time.nullable().openapi({ description: "Accurate to the minute" }),
};
const Key = z.object(keyShape).openapi("Key");
const NewKey = z
  .object({ ...keyShape, key: z.string().openapi({ description: "The key itself, shown only in this response" }) })
  .openapi("NewKey");
const RotatedKey = z.object({ ...NewKey.shape, former: Key }).openapi("RotatedKey");

export const KEY_ROUTES = {
  "GET /organisation/key": {
    tag: "Keys",
    summary: "Valid API keys, oldest first",
    query: z.object(pageQuery(QUANTITY, Page)),
    answer: z.array(Key),
  },
  "POST /organisation/key": {
    tag: "Keys",
    summary: "Create a key",
    description:
      "The key is shown only in this response. With scope_tag it can see and create only streams with that tag and " +
      "cannot manage the organisation itself. Several keys can be valid at once, so that one can replace another.",
    body: z.object({
      role: Role,
      label: text({ most: LABEL_LIMIT }).nullable().optional(),
      scope_tag: text({ most: TAG_LENGTH_LIMIT }).nullable().optional(),
      expires_at: time().nullable().optional(),
    }),
    bodyRequired: true,
    answer: NewKey,
  },
  "POST /organisation/key/{id}/rotate": {
    tag: "Keys",
    summary: "Replace a key",
    description:
      "Creates a key with the same permissions. The old key remains valid for another 24 hours, so nothing is interrupted.",
    answer: RotatedKey,
    errors: [400, 404],
  },
  "DELETE /organisation/key/{id}": {
    tag: "Keys",
    summary: "Revoke a key",
    description: "The key is refused from now on.",
    answer: Key,
    errors: [404],
  },
} satisfies Declarations;

export function keyRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
  },
): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps, KEY_ROUTES);

  routes.guarded("GET /organisation/key", async (c, { organisation }, { query: { quantity, cursor } }) => {
    const living = await listApiKeys(db, organisation.id, clock.now());
    const positionOf = (row: ApiKeyTable): [number, string] => [Number(row.created_at), row.id];
    const isBehind = (row: ApiKeyTable) => cursor === undefined || compare(positionOf(row), cursor) > 0;
    return c.json(pageOf(c, living.filter(isBehind), { quantity, cursor: Page, positionOf }).map(keyRecord));
  });

  routes.guarded(
    "POST /organisation/key",
    async (c, caller, { body: { role, label = null, scope_tag: scopeTag = null, expires_at: expiresAt = null } }) => {
      const now = clock.now();
      if (expiresAt !== null && expiresAt <= now) throw new InvalidValue("expires_at", "must be in the future");
      const settings = { role, label, scopeTag, expiresAt };
      const { id: organisationId } = caller.organisation;
      const change = ({ id }: { readonly id: string }) => ({
        action: "key.create",
        subject: id,
        detail: { role, scope_tag: scopeTag, label },
      });
      const { key, row } = await changed(db, caller, now, change, async (trx) => {
        await checkRoomForKey(trx, organisationId, now);
        return await addApiKey(trx, { ...settings, organisationId, now });
      });
      return c.json({ ...keyRecord(row), key });
    },
  );

  routes.guarded("POST /organisation/key/{id}/rotate", async (c, caller) => {
    const id = c.req.param("id");
    const now = clock.now();
    const change = ({ row }: { readonly row: ApiKeyTable }) => ({
      action: "key.rotate",
      subject: id,
      detail: { successor: row.id },
    });
    const rotate = (trx: Kysely<Schema>) => rotateApiKey(trx, caller.organisation.id, id, now);
    const { key, row, former } = await changed(db, caller, now, change, rotate);
    return c.json({ ...keyRecord(row), key, former: keyRecord(former) });
  });

  routes.guarded("DELETE /organisation/key/{id}", async (c, caller) => {
    const id = c.req.param("id");
    const now = clock.now();
    const change = { action: "key.revoke", subject: id };
    const revoke = (trx: Kysely<Schema>) => revokeApiKey(trx, caller.organisation.id, id, now);
    return c.json(keyRecord(await changed(db, caller, now, change, revoke)));
  });

  return routes.hono;
}

/** The order of the list: by time, then by id. */
function compare([at, id]: readonly [number, string], [otherAt, otherId]: readonly [number, string]): number {
  return at - otherAt || (id < otherId ? -1 : Number(id > otherId));
}

function keyRecord(row: ApiKeyTable): z.infer<typeof Key> {
  const time = (ms: number) => new Date(Number(ms)).toISOString();
  return {
    id: row.id,
    label: row.label,
    role: row.role,
    scope_tag: row.scope_tag,
    created_at: time(row.created_at),
    expires_at: row.expires_at === null ? null : time(row.expires_at),
    last_used_at: row.last_used_at === null ? null : time(row.last_used_at),
  };
}
