// `headgate refusals`, and the history of one stream: what was published, what was refused, and why. Reads the store,
// whether the service runs or not; a running service writes a refusal within a second or two.
import { ConfigInvalid } from "../../errors.ts";
import { publishRecord } from "../../http/records/publish.ts";
import { refusalRecord } from "../../http/records/refusal.ts";
import { namesOf } from "../../organisation/reads/names.ts";
import { listPublishes } from "../../publish/monitoring/publish-list.ts";
import { REFUSAL_REASONS, reasonWords } from "../../publish/refusals/reasons.ts";
import { listRefusals, type PastRefusal, type RefusalFilter } from "../../publish/refusals/refusal-list.ts";
import type { Store } from "../../store/open.ts";
import type { StreamTable } from "../../store/schema.ts";
import { atStore, chosenOrganisation } from "../at-store.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table, timeText } from "../output.ts";
import { timeOf } from "../words.ts";

/** Most entries of one list. */
const QUANTITY_LIMIT = 10_000;

type Filter = Pick<RefusalFilter, "reason" | "request" | "from" | "to" | "quantity">;
type Whose = Pick<RefusalFilter, "organisationId" | "streamId" | "unknown">;

export async function runRefusals(flags: GivenFlags): Promise<void> {
  await atStore(flags, async (at) => {
    const organisation = await chosenOrganisation(at, flags);
    await printRefusals(flags, at.db, { organisationId: organisation.id, streamId: null, unknown: true });
  });
}

export async function printRefusals(flags: GivenFlags, db: Store["db"], whose: Whose): Promise<void> {
  const { quantity, ...filter } = filterOf(flags);
  const found: PastRefusal[] = [];
  for (let behind: RefusalFilter["behind"] = null; ; ) {
    const page = { ...whose, ...filter, behind, quantity: quantity - found.length };
    const { refusals, rest } = await listRefusals(db, page);
    found.push(...refusals.map(({ position: _, ...refusal }) => refusal));
    behind = rest;
    if (behind === null || found.length >= quantity) break;
  }
  const rows = found.map((of) => [
    ...[timeText(of.firstAt), of.count, of.request, of.protocol, of.stream?.name ?? of.sentName, of.address],
    reasonWords(of.reason, of.status),
    of.detail,
  ]);
  const heading = ["first at", "times", "what", "protocol", "stream name", "address", "reason", "it was told"];
  print(flags, found.map(refusalRecord), table([heading, ...rows]));
}

export async function printPublishes(
  flags: GivenFlags,
  db: Store["db"],
  stream: Pick<StreamTable, "id" | "organisation_id">,
): Promise<void> {
  const { quantity, from, to } = filterOf(flags);
  const publishes = await listPublishes(db, stream.id, { before: null, quantity, from, to });
  const rows = publishes.map((of) => [
    ...[timeText(of.askedAt), of.clientId, of.state, of.protocol, of.address, timeText(of.endedAt)],
    of.denial === null ? of.endWords : `${reasonWords(of.denial.cause, of.denial.status)} ${of.denial.reason}`,
  ]);
  const heading = ["asked at", "client id", "state", "protocol", "address", "ended at", "why"];
  const enders = publishes.map(({ ending }) => ending?.who ?? null);
  const nameOf = await namesOf(db, stream.organisation_id, enders);
  const records = publishes.map((publish) => publishRecord(publish, nameOf));
  print(flags, records, table([heading, ...rows]));
}

function filterOf({ reason, request, from, to, quantity }: GivenFlags): Filter {
  if (typeof reason === "string" && !REFUSAL_REASONS.some((known) => known === reason))
    throw new ConfigInvalid(`--reason must be one of ${REFUSAL_REASONS.join(", ")}`);
  if (request !== undefined && request !== "publish" && request !== "play")
    throw new ConfigInvalid("--request must be publish or play");
  if (typeof quantity !== "number" || !(quantity >= 1 && quantity <= QUANTITY_LIMIT))
    throw new ConfigInvalid(`--quantity must be 1 to ${QUANTITY_LIMIT}`);
  return {
    reason: typeof reason === "string" ? reason : null,
    request: request ?? null,
    from: timeOf("from", from),
    to: timeOf("to", to),
    quantity: Math.floor(quantity),
  };
}
