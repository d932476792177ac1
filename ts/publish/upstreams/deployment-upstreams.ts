// The upstreams the operator configured for every publish, as complete RTMP URLs (R4), and the addresses to dial for an
// upstream.
import type { CompiledQuery, Selectable } from "kysely";
import type { Upstream } from "../../media.ts";
import { withoutBrackets } from "../../network.ts";
import type { StreamUpstreamTable } from "../../store/schema.ts";
import { resolveBySystem, resolveUpstream } from "../addresses/address-guard.ts";
import type { Resolve } from "../addresses/resolver.ts";
import { utf8 } from "../stream-name.ts";

/** An upstream of a stream, for a publish that is starting. */
export interface StoredUpstream extends Pick<Upstream, "id" | "url"> {
  /** The customer's label; null for none. */
  readonly label: string | null;
  /** Whether nothing is pushed there until it is resumed. */
  readonly paused: boolean;
}

/** The upstreams that a stream is pushed to, for a publish that is starting. */
export interface StartingUpstreams {
  /** Reads those of a stream. */
  query(streamId: string): CompiledQuery<Selectable<StreamUpstreamTable>>;
  /** From its rows; the oldest first. */
  read(rows: readonly Selectable<StreamUpstreamTable>[]): readonly StoredUpstream[];
}

/** What those see of an upstream who may not see its URL. */
export interface UpstreamNames {
  /** The customer's label; null for none. */
  readonly label: string | null;
  /** The first characters of its stream key. */
  readonly maskedKey: string;
}

/** A stream's upstream as the media core gets it. */
export function coreUpstream({ id, url, paused }: StoredUpstream): Upstream {
  return { id, url, source: "stream", ...(paused && { paused }) };
}

/** The owner of look-ups for upstreams that the operator configured. */
const OPERATOR = "operator";
/** The owner of those for publishes that have ended meanwhile. */
const ENDED = "ended";

/** Fills `{name}` and `{args}` into each template; the arguments verbatim, and without arguments a trailing `?`
 *  disappears. Null when a template needs arguments that are not UTF-8: text could only carry them altered (W2). */
export function writeUpstreams(
  templates: readonly string[],
  name: string,
  customArguments: Uint8Array | null,
): readonly string[] | null {
  const text = utf8(customArguments ?? new Uint8Array());
  if (text === null && templates.some((template) => template.includes("{args}"))) return null;
  return templates.map((template) => {
    // In one pass: inserted text is never searched for placeholders.
    const url = template.replace(/\{(name|args)\}/g, (_, field) => (field === "name" ? name : (text ?? "")));
    return text === "" && /\?(\{args\})?$/.test(template) ? url.replace(/\?$/, "") : url;
  });
}

/** Whether `host` belongs to an upstream that the operator configured: those are exempt from the address guard (R4). */
export function isConfiguredUpstream(templates: readonly string[], host: string): boolean {
  return templates.some((template) => {
    // Placeholders contain no host characters: a template with one in its host has no fixed host.
    const authority = /^[a-z]+:\/\/([^/?#]*)/i.exec(template)?.[1] ?? "";
    const configured = authority.replace(/^.*@/, "").replace(/:\d+$/, "");
    return withoutBrackets(configured).toLowerCase() === withoutBrackets(host).toLowerCase();
  });
}

/** Addresses to dial for an upstream of a publish of `organisation`, which is null when the publish has ended; empty when
 *  the host does not resolve, null when it may not be dialled. A customer's upstream is not exempt from the guard merely
 *  because the operator has one on the same host. */
export async function addressesToDial(
  { source, host }: { readonly source: string; readonly host: string },
  organisation: string | null,
  settings: { readonly dev: boolean; readonly upstreamPush: readonly string[]; readonly resolve?: Resolve },
): Promise<readonly string[] | null> {
  const isOperators = source === "deployment" && isConfiguredUpstream(settings.upstreamPush, host);
  const owner = isOperators ? OPERATOR : (organisation ?? ENDED);
  const { dev, resolve = resolveBySystem } = settings;
  return await resolveUpstream(host, { exempt: dev || isOperators, owner, resolve });
}
