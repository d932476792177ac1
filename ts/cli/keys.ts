// `headgate keys …`: the API keys that customers' servers use.
import { addApiKey, checkRoomForKey, listApiKeys, revokeApiKey, rotateApiKey } from "../organisation/api-keys.ts";
import { type Change, changed } from "../organisation/audit.ts";
import type { ApiKeyTable } from "../store/schema.ts";
import { type AtStore, atStore, chosenOrganisation, operator, roleOf } from "./at-store.ts";
import type { GivenFlags } from "./flags.ts";
import { print, table, timeText } from "./output.ts";
import { unknownVerb, wanted } from "./words.ts";

export async function runKeys(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, id] = words;
  await atStore(flags, async (at) => {
    const { db, now } = at;
    const { id: organisationId, ...organisation } = await chosenOrganisation(at, flags);
    const noted = <T>(change: (result: T) => Change, work: (trx: AtStore["db"]) => Promise<T>) =>
      changed(db, operator({ id: organisationId }), now, change, work);
    const shown = ({ hash: _, ...row }: ApiKeyTable) => row;
    switch (verb) {
      case "ls": {
        const keys = await listApiKeys(db, organisationId, now);
        const rows = keys.map((key) => [
          key.id,
          key.role,
          key.label,
          timeText(key.expires_at),
          timeText(key.last_used_at),
        ]);
        return print(flags, keys.map(shown), table([["id", "role", "label", "expires", "last used"], ...rows]));
      }
      case "create": {
        const label = typeof flags.label === "string" ? flags.label : null;
        const settings = { organisationId, role: roleOf(flags), now, label };
        const { key, row } = await noted(
          ({ id: subject }: { readonly id: string; readonly key: string; readonly row: ApiKeyTable }) => ({
            action: "key.create",
            subject,
          }),
          async (trx) => {
            await checkRoomForKey(trx, organisationId, now);
            return await addApiKey(trx, settings);
          },
        );
        return print(flags, { ...shown(row), key }, [`API key of ${organisation.name}, shown only once: ${key}`]);
      }
      case "rotate": {
        const old = wanted(id, "the key's id");
        const { key, row, former } = await noted(
          () => ({ action: "key.rotate", subject: old }),
          (trx) => rotateApiKey(trx, organisationId, old, now),
        );
        const until = timeText(former.expires_at);
        return print(flags, { ...shown(row), key, former: shown(former) }, [
          `New API key, shown only once: ${key}`,
          `The former one is valid until ${until}.`,
        ]);
      }
      case "revoke": {
        const old = wanted(id, "the key's id");
        const row = await noted(
          () => ({ action: "key.revoke", subject: old }),
          (trx) => revokeApiKey(trx, organisationId, old, now),
        );
        return print(flags, shown(row), [`Key ${row.id} is revoked.`]);
      }
      default:
        throw unknownVerb("keys", verb, ["ls", "create", "rotate ID", "revoke ID"]);
    }
  });
}
