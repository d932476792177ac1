// What a publish request asks for: its name and arguments, the stream, its organisation, and the credentials that came
// with it.
import type { Kysely } from "kysely";
import type { Customer, Customers } from "../../organisation/customers.ts";
import { step } from "../../step-times.ts";
import { isEnabled } from "../../store/enabled.ts";
import type { Schema } from "../../store/schema.ts";
import { readBackupArgument } from "../backup/argument.ts";
import { type DenialContext, type Denied, denied } from "../denials.ts";
import { refusalOfStream } from "../ending/refused-streams.ts";
import { type Authorised, type CredentialsDeps, checkCredentials } from "../key/credentials.ts";
import { findNamed, type NamedStream } from "../limits/named-stream.ts";
import type { WrongNames } from "../limits/wrong-names.ts";
import type { PublishEvents } from "../publish-events.ts";
import type { Intent } from "../record.ts";
import { alsoReservedField, checkStreamName } from "../stream-name.ts";
import { writeUpstreams } from "../upstreams/deployment-upstreams.ts";
import type { PublishRequest } from "./publish-request.ts";

/** The name of a request, and the operator's upstreams for it. */
export interface RequestedName {
  readonly outcome: "named";
  readonly slot: Pick<Intent, "name" | "backup">;
  /** Arguments without that of a backup. */
  readonly otherArguments: Intent["otherArguments"];
  /** URLs. */
  readonly configured: readonly string[];
}

export function readName(
  { name, arguments: given }: Pick<PublishRequest, "name" | "arguments">,
  settings: { readonly upstreamPush: readonly string[]; readonly backupArgument: string },
): RequestedName | Denied {
  const check = checkStreamName(name, given);
  if (check.outcome === "refused") return denied(check.cause, check.description);
  const { isBackup: backup, others: otherArguments } = readBackupArgument(given, settings.backupArgument);
  // Publish and backup are one broadcast, so both are pushed to the same addresses.
  const configured = writeUpstreams(settings.upstreamPush, check.name, otherArguments);
  if (configured === null) return denied("malformed_name", "Custom arguments are not UTF-8");
  return { outcome: "named", slot: { name: check.name, backup }, otherArguments, configured };
}

export interface RequestedDeps extends CredentialsDeps {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly customers: Pick<Customers, "of">;
  /** Slows those who guess names. */
  readonly wrongNames: WrongNames;
  readonly events: Pick<PublishEvents, "emit">;
}

/** A request that its customer may be asked about. */
export interface KnownRequest extends Authorised {
  readonly outcome: "known";
  readonly stream: NamedStream;
  readonly customer: Customer;
}

/** `about` receives whose stream it is. */
export async function findRequested(
  deps: RequestedDeps,
  request: PublishRequest,
  name: string,
  about: DenialContext,
): Promise<KnownRequest | Denied> {
  const { clock } = deps;
  const stream = await findNamed(deps, request.address, name);
  if ("outcome" in stream) return stream;
  about.organisation = stream.organisation_id;
  about.stream = stream.id;
  const notNow = refusalOfStream(stream, clock.now());
  if (notNow !== null) return notNow;
  if (!isEnabled(stream, clock.now())) return denied("organisation_disabled");
  deps.events.emit({ kind: "found", organisationId: stream.organisation_id });
  const customer = await step("settings", () => deps.customers.of(stream.organisation_id));
  const field = alsoReservedField(request.arguments, customer.settings);
  if (field !== null) return denied("reserved_field", `Custom arguments must not contain ${field}`);
  const { claims = null, address } = request;
  const presented = { address, arguments: request.arguments, claims, settings: customer.settings };
  const authorised = await checkCredentials(deps, { ...presented, stream: { ...stream, name } });
  if ("outcome" in authorised) return authorised;
  return { outcome: "known", stream, customer, ...authorised };
}
