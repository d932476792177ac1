// The organisations of the deployment for its operator: identity, number of objects, and traffic.
import type { Kysely } from "kysely";
import { isEnabled } from "../store/enabled.ts";
import type { OrganisationTable, Schema } from "../store/schema.ts";
import { countsOf } from "./reads/stream-list.ts";

export interface OrganisationSummary extends Pick<OrganisationTable, "id" | "hash" | "name" | "plan"> {
  /** Epoch ms; null for a trial without an end and for paid ones. */
  readonly trialEndsAt: number | null;
  /** False when it is disabled, or its trial is over. */
  readonly enabled: boolean;
  /** Excluding deleted ones. */
  readonly streams: number;
  readonly live: number;
  /** In the current month, UTC. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Epoch ms. */
  readonly createdAt: number;
}

/** Oldest first, only those after the organisation `behind`. */
export async function listOrganisations(
  db: Kysely<Schema>,
  page: { readonly behind: { readonly createdAt: number; readonly id: string } | null; readonly quantity: number },
  now: number,
): Promise<readonly OrganisationSummary[]> {
  let query = db.selectFrom("organisation").selectAll();
  if (page.behind !== null) {
    const { createdAt, id } = page.behind;
    query = query.where((eb) =>
      eb.or([eb("created_at", ">", createdAt), eb.and([eb("created_at", "=", createdAt), eb("id", ">", id)])]),
    );
  }
  const organisations = await query.orderBy("created_at").orderBy("id").limit(page.quantity).execute();
  const ids = organisations.map(({ id }) => id);
  if (ids.length === 0) return [];
  const [streams, bytes] = await Promise.all([countsOf(db, ids), bytesOf(db, ids, now)]);
  return organisations.map((organisation) => {
    const { id, hash, name, plan, trial_ends_at: end } = organisation;
    const states = streams.filter((row) => row.organisation_id === id && row.state !== "deleted");
    const month = bytes.find((row) => row.organisation_id === id);
    return {
      id,
      hash,
      name,
      plan,
      trialEndsAt: end === null ? null : Number(end),
      enabled: isEnabled(organisation, now),
      streams: states.reduce((sum, row) => sum + Number(row.streams), 0),
      live: Number(states.find(({ state }) => state === "live")?.streams ?? 0),
      bytesIn: Number(month?.bytes_in ?? 0),
      bytesOut: Number(month?.bytes_out ?? 0),
      createdAt: Number(organisation.created_at),
    };
  });
}

async function bytesOf(db: Kysely<Schema>, ids: readonly string[], now: number) {
  const month = new Date(now).toISOString().slice(0, "2026-01".length);
  return await db
    .selectFrom("usage_sum")
    .select((eb) => [
      "organisation_id",
      eb.fn.sum<number>("bytes_in").as("bytes_in"),
      eb.fn.sum<number>("bytes_out").as("bytes_out"),
    ])
    .where("organisation_id", "in", ids)
    .where("day", ">=", `${month}-01`)
    .where("day", "<=", `${month}-31`)
    .groupBy("organisation_id")
    .execute();
}
