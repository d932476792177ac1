// /organisation/key: API keys of an organisation (M15). Administrators only; a key's text is in the answer that makes
// it and nowhere else.
import type { Kysely } from "kysely";
import { InvalidValue, WrongDataType } from "../errors.ts";
import { addApiKey, checkRoomForKey, listApiKeys, revokeApiKey, rotateApiKey } from "../organisation/api-keys.ts";
import { changed } from "../organisation/audit.ts";
import type { Authorise } from "../organisation/callers.ts";
import { TAG_LENGTH_LIMIT } from "../organisation/streams.ts";
import type { ApiKeyTable, Schema } from "../store/schema.ts";
import { newRoutes, Role, type Routes, Time, z } from "./openapi.ts";
import { optionalText, readJson, requiredText, roleOf } from "./request/request.ts";

/** Longest label, characters. */
const LABEL_LIMIT = 100;

const keyShape = {
  id: z.string().openapi({ description: "The part of the key after hg_", example: "k3Jd92Lm" }),
  label: z.string().nullable(),
  role: Role,
  scope_tag: z.string().nullable().openapi({ description: "The key sees and makes only streams with this tag" }),
  created_at: Time,
  expires_at: Time.nullable(),
  last_used_at: Time.nullable().openapi({ description: "To the minute" }),
};
const Key = z.object(keyShape).openapi("Key");
const NewKey = z
  .object({ ...keyShape, key: z.string().openapi({ description: "The key itself, shown this once" }) })
  .openapi("NewKey");
const RotatedKey = z.object({ ...NewKey.shape, former: Key }).openapi("RotatedKey");

export function keyRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
}): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps.authorise);

  routes.guarded(
    "GET /organisation/key",
    { tag: "Keys", summary: "Keys that open something, oldest first", answer: z.array(Key) },
    async (c, { organisation }) => c.json((await listApiKeys(db, organisation.id, clock.now())).map(keyRecord)),
  );

  routes.guarded(
    "POST /organisation/key",
    {
      tag: "Keys",
      summary: "Create a key",
      description:
        "Its text is shown this once. With scope_tag it sees and makes only streams with that tag and cannot touch the " +
        "organisation itself. Any number of keys live beside each other, so that one can replace another.",
      body: z.object({
        role: Role,
        label: z.string().max(LABEL_LIMIT).nullable().optional(),
        scope_tag: z.string().min(1).max(TAG_LENGTH_LIMIT).nullable().optional(),
        expires_at: z.iso.datetime().nullable().optional(),
      }),
      bodyRequired: true,
      answer: NewKey,
    },
    async (c, caller) => {
      const body = await readJson(c);
      const now = clock.now();
      const wish = {
        role: roleOf(requiredText(body, "role")),
        label: shortText(body, "label", LABEL_LIMIT),
        scopeTag: shortText(body, "scope_tag", TAG_LENGTH_LIMIT),
        expiresAt: futureTime(body, "expires_at", now),
      };
      const { id: organisationId } = caller.organisation;
      const change = ({ id }: { readonly id: string }) => ({
        action: "key.create",
        subject: id,
        detail: { role: wish.role, scope_tag: wish.scopeTag, label: wish.label },
      });
      const { key, row } = await changed(db, caller, now, change, async (trx) => {
        await checkRoomForKey(trx, organisationId, now);
        return await addApiKey(trx, { ...wish, organisationId, now });
      });
      return c.json({ ...keyRecord(row), key });
    },
  );

  routes.guarded(
    "POST /organisation/key/{id}/rotate",
    {
      tag: "Keys",
      summary: "Replace a key",
      description: "A new key like it; the former one opens for another 24 hours, so that nothing stops meanwhile.",
      answer: RotatedKey,
      errors: [400, 404],
    },
    async (c, caller) => {
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
    },
  );

  routes.guarded(
    "DELETE /organisation/key/{id}",
    { tag: "Keys", summary: "Revoke a key", description: "It opens nothing any more.", answer: Key, errors: [404] },
    async (c, caller) => {
      const id = c.req.param("id");
      const now = clock.now();
      const change = { action: "key.revoke", subject: id };
      const revoke = (trx: Kysely<Schema>) => revokeApiKey(trx, caller.organisation.id, id, now);
      return c.json(keyRecord(await changed(db, caller, now, change, revoke)));
    },
  );

  return routes.hono;
}

function shortText(body: Readonly<Record<string, unknown>>, name: string, limit: number): string | null {
  const text = optionalText(body, name);
  if (text === null) return null;
  if ([...text].length > limit) throw new InvalidValue(name, `must not be longer than ${limit} characters`);
  return text;
}

/** RFC 3339, after `now`. */
function futureTime(body: Readonly<Record<string, unknown>>, name: string, now: number): number | null {
  const text = optionalText(body, name);
  if (text === null) return null;
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(ms)) throw new WrongDataType(name, "RFC 3339 time");
  if (ms <= now) throw new InvalidValue(name, "must be in the future");
  return ms;
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
