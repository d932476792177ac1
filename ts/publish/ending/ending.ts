// Why a publish is over: a code that names who or what ended it, and the words for its broadcaster. One table says for
// each code who that is, and whether a client may start again by itself.
import type { AuditTable } from "../../store/schema.ts";
import type { EndingColumns } from "../../store/tables/ending-columns.ts";
import type { RecordedEndReason } from "./recorded-end-reason.ts";

/** Who or what ended a publish, as its broadcaster is told. */
export type EndedBy =
  | "broadcaster"
  | "person"
  | "api"
  | "customer"
  | "revocation"
  | "lock"
  | "deletion"
  | "operator"
  | "successor"
  | "upstream"
  | "loss"
  | "service";

interface Kind {
  readonly by: EndedBy;
  /** A client must not start again by itself. */
  readonly isFinal: boolean;
  readonly title: string;
  /** The words for the broadcaster when nobody gave any. */
  readonly standard: string;
}

const kind = (by: EndedBy, isFinal: boolean, title: string, standard: string): Kind => ({
  by,
  isFinal,
  title,
  standard,
});

/** Only losses, upgrades, overload and failures of the service may be followed by a new attempt. */
export const END_CODES = {
  ended_by_person: kind("person", true, "Ended by a person", "Publish was ended by the operator"),
  ended_by_api: kind("api", true, "Ended through the API", "Publish was ended by the operator"),
  ended_by_customer: kind("customer", true, "Ended by the customer", "Publish ended by the customer"),
  token_revoked: kind("revocation", true, "Token revoked", "Token revoked"),
  stream_locked: kind("lock", true, "Stream was locked", "Stream was locked"),
  stream_deleted: kind("deletion", true, "Stream was deleted", "Stream was deleted"),
  ended_by_operator: kind("operator", true, "Organisation is not enabled", "Organisation is not enabled"),
  ended_by_broadcaster: kind("broadcaster", true, "Ended by the broadcaster", "The broadcaster ended it"),
  replaced: kind("successor", true, "Replaced", "Replaced by a new publish of the same name"),
  upstream_refused: kind(
    "upstream",
    true,
    "Refused by stream_url",
    "The server named in stream_url refused the stream",
  ),
  update_unanswered: kind("customer", false, "Could not be authorised", "The customer could not be reached"),
  broadcast_lost: kind("loss", false, "Broadcast was lost", "The connection to the broadcaster was lost"),
  service_stopped: kind("service", false, "Service was stopped", "The service was stopped or restarted"),
} as const satisfies Readonly<Record<string, Kind>>;

export type EndCode = keyof typeof END_CODES;

/** Who asked for an end, as in the audit log. */
export interface EndedWho {
  readonly kind: AuditTable["who_kind"];
  readonly id: string | null;
}

/** An end on purpose. */
export interface Ending {
  readonly code: EndCode;
  /** The person or key; null for everybody else. */
  readonly who: EndedWho | null;
  /** For the broadcaster; at most 200 characters. */
  readonly reason: string;
}

/** An ending in the words given, or in the standard ones of its code. */
export function endingOf(code: EndCode, reason: string | null = null, who: EndedWho | null = null): Ending {
  return { code, who, reason: reason || END_CODES[code].standard };
}

/** An ending by the caller of a request: a person in the dashboard, or a program with an API key. */
export function endingBy(who: EndedWho, reason: string | null | undefined = null): Ending {
  return endingOf(who.kind === "key" ? "ended_by_api" : "ended_by_person", reason ?? null, who);
}

/** What a recorded reason means for the broadcaster when nobody ended it on purpose. */
const BY_REASON: { readonly [reason in RecordedEndReason]?: EndCode } = {
  unpublished: "ended_by_broadcaster",
  replaced: "replaced",
  rejected_by_customer: "ended_by_customer",
  kicked: "ended_by_person",
  stream_withdrawn: "stream_locked",
  upstream_refused: "upstream_refused",
  customer_unreachable: "update_unanswered",
  shutdown: "service_stopped",
  internal_error: "service_stopped",
  gateway_restarted: "service_stopped",
  node_lost: "service_stopped",
};

export function endingFrom(reason: string): Ending {
  return endingOf(BY_REASON[reason as RecordedEndReason] ?? "broadcast_lost");
}

/** What a broadcaster's program is told of an end: `final`, whether it must not start again by itself. */
export function endForClients({ code, reason }: Ending) {
  const { by, isFinal, title } = END_CODES[code];
  return { code, title, ended_by: by, reason, final: isFinal };
}

/** Its fields in the log. */
export function inLog(ending: Ending | null) {
  return ending && { code: ending.code, by: ending.who, detail: ending.reason };
}

export function writeEnding(ending: Ending | null): EndingColumns {
  const { code, who, reason } = ending ?? { code: null, who: null, reason: null };
  return { end_code: code, end_who: who && `${who.kind}:${who.id ?? ""}`, end_detail: reason };
}

/** An ending as text, for a node that carries it out later. */
export function endingText(ending: Ending): string {
  return JSON.stringify(writeEnding(ending));
}

/** Of a text of `endingText`; without one, as by an operator. */
export function endingFromText(text: string | null): Ending {
  return (text === null ? null : readEnding(JSON.parse(text) as EndingColumns)) ?? endingOf("ended_by_person");
}

/** Null when it was not ended on purpose, or with a code of a newer version of headgate. */
export function readEnding({ end_code, end_who, end_detail }: EndingColumns): Ending | null {
  if (end_code === null || !Object.hasOwn(END_CODES, end_code)) return null;
  const [, whoKind = "", id = ""] = /^(key|user|operator):(.*)$/.exec(end_who ?? "") ?? [];
  const who = whoKind === "" ? null : { kind: whoKind as EndedWho["kind"], id: id === "" ? null : id };
  return endingOf(end_code as EndCode, end_detail, who);
}
