// What a webhook call needs of its organisation: signing keys and settings. Cached for a short time, so that a burst of
// publishes reads the store once.

import type { Kysely } from "kysely";
import { RecentMap } from "../limits/recent-map.ts";
import type { Schema } from "../store/schema.ts";
import { type OrganisationSettings, readSettings } from "./settings.ts";
import { type CopyAddress, readCopyAddress } from "./webhook/copy-address.ts";
import type { WebhookSecrets } from "./webhook-secret.ts";

/** How long until another node's change is seen here, ms. A former secret stays valid for a day. */
const FRESH_MS = 10_000;
/** Organisations cached; the one read first is evicted first. */
const REMEMBERED_LIMIT = 10_000;

export interface Customer {
  /** The current key first. */
  readonly keys: readonly Uint8Array[];
  readonly settings: OrganisationSettings;
  /** The current webhook URL; publishes continue to use the one they started with. */
  readonly webhook: string | null;
  /** The second webhook and its keys, the current one first; null: none. */
  readonly copies: (CopyAddress & { readonly keys: readonly Uint8Array[] }) | null;
}

export interface Customers {
  of(organisationId: string): Promise<Customer>;
  /** Call after a local change: the next call then sees it. */
  forget(organisationId: string): void;
}

export function createCustomers(deps: {
  readonly db: Kysely<Schema>;
  readonly secrets: Pick<WebhookSecrets, "keys">;
  readonly copySecrets: Pick<WebhookSecrets, "keys">;
  readonly clock: { now(): number };
}): Customers {
  const { db, secrets, copySecrets, clock } = deps;
  const remembered = new RecentMap<string, { readonly customer: Promise<Customer>; readonly at: number }>(
    REMEMBERED_LIMIT,
  );

  async function read(organisationId: string): Promise<Customer> {
    const organisation = db.selectFrom("organisation").select("webhook").where("id", "=", organisationId);
    const [keys, settings, row, copies] = await Promise.all([
      secrets.keys(organisationId),
      readSettings(db, organisationId),
      organisation.executeTakeFirst(),
      // A second webhook decides nothing: what fails here costs its copies, and no publish.
      copiesOf(organisationId).catch(() => null),
    ]);
    return { keys, settings, webhook: row?.webhook ?? null, copies };
  }

  async function copiesOf(organisationId: string): Promise<Customer["copies"]> {
    const address = await readCopyAddress(db, organisationId);
    if (address === null) return null;
    return { url: address.url, events: address.events, keys: await copySecrets.keys(organisationId) };
  }

  return {
    async of(organisationId) {
      const now = clock.now();
      const known = remembered.get(organisationId);
      // If the clock was set back, the age of the entry is unknown.
      if (known !== undefined && now >= known.at && now < known.at + FRESH_MS) return await known.customer;
      const entry = { customer: read(organisationId), at: now };
      remembered.set(organisationId, entry);
      // A failure is not cached.
      entry.customer.catch(() => {
        if (remembered.get(organisationId) === entry) remembered.delete(organisationId);
      });
      return await entry.customer;
    },
    forget(organisationId) {
      remembered.delete(organisationId);
    },
  };
}
