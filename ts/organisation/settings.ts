// The settings of an organisation (M7, §1 of the decisions): names, allowed values, and defaults.
import type { Kysely } from "kysely";
import { z } from "zod";
import { isNetwork } from "../network.ts";
import type { Schema } from "../store/schema.ts";

/** Fields that update_publish may carry in addition to those of the specification. */
export const UPDATE_FIELDS = ["bitrate", "bytes_in", "bytes_out", "dropped_frames", "fps", "loss", "rtt"] as const;
export type UpdateField = (typeof UPDATE_FIELDS)[number];

/** Highest value for the number of rejected or unanswered updates in a row. */
const ROW_LIMIT = 1_000;
/** Most networks that may play an organisation's streams. */
const NETWORKS_LIMIT = 100;
/** Highest bitrate limit, kbit/s. */
export const BITRATE_LIMIT_KBPS = 100_000;
/** Longest time for which upstreams and players of a lost publish may be held, s. */
export const HOLD_LIMIT_S = 60;
/** Bounds of the time for which an RTMP broadcaster may send nothing, s. */
export const SILENCE_LEAST_S = 5;
export const SILENCE_LIMIT_S = 3_600;

const SWITCHES = {
  publish_on_hook_unreachable: z
    .enum(["deny", "allow"])
    .describe("What happens to a publish when the webhook gives no usable answer (W12)"),
  strict_arguments: z.boolean().describe("Also refuse custom arguments named time or timestamp (W3)"),
  update_reject_after: z
    .int()
    .min(1)
    .max(ROW_LIMIT)
    .describe("How many rejections of update_publish in a row end the publish; a 403 always ends it immediately (W15)"),
  update_max_unreachable: z
    .int()
    .min(0)
    .max(ROW_LIMIT)
    .describe("How many unanswered update_publish in a row end the publish; 0: no number does (W16)"),
  reason_to_broadcaster: z.boolean().describe("Send the first line of a 403 response's body to the broadcaster (W26)"),
  require_token: z
    .boolean()
    .describe("Every publish needs a web token for its stream: a WHIP bearer, or token= in the arguments (W22)"),
  publish_key: z
    .boolean()
    .describe(
      "Every publish needs the publish key of its stream, as key= in the arguments, or a web token for it (M12a). " +
        "A stream's own setting (PUT /stream/{id}/key) overrides it; publishes that already run continue",
    ),
  play: z
    .enum(["open", "token", "addresses"])
    .describe(
      "Who may play by RTMP: anyone who knows the name, anyone with a play token (POST /stream/{id}/play-token) as " +
        "token= after the name, or the addresses of play_addresses. Players that already play continue",
    ),
  play_addresses: z
    .array(z.string().refine(isNetwork, "must be an IP address or a network such as 10.0.0.0/8"))
    .max(NETWORKS_LIMIT)
    .describe("IP addresses and networks that may play when play is addresses"),
  max_bitrate_kbps: z
    .int()
    .min(0)
    .max(BITRATE_LIMIT_KBPS)
    .describe("Video bitrate limit of WHIP publishes, from the next publish on; 0: no limit set by the organisation"),
  hold_s: z
    .int()
    .min(0)
    .max(HOLD_LIMIT_S)
    .nullable()
    .describe(
      "How long upstreams and players of a lost publish are held for its successor, in seconds, from the next " +
        "publish on; 0: not at all; null: the service's setting",
    ),
  silence_s: z
    .int()
    .min(SILENCE_LEAST_S)
    .max(SILENCE_LIMIT_S)
    .describe(
      "How long an RTMP broadcaster may send nothing at all before its publish counts as lost, in seconds, from the " +
        "next publish on (W19): more than the time between two pictures of a slide show without audio",
    ),
  health_events: z
    .boolean()
    .describe(
      "Also call the webhook with call=health when a live stream has no media, or an upstream is lost, and when they are back",
    ),
  update_fields: z
    .array(z.enum(UPDATE_FIELDS))
    .max(UPDATE_FIELDS.length)
    .describe("Additional fields of update_publish, after the documented ones"),
};

/** All settings, as callers see them. */
export const organisationSettings = z.object(SWITCHES);
export type OrganisationSettings = z.output<typeof organisationSettings>;

export const DEFAULT_SETTINGS: OrganisationSettings = {
  publish_on_hook_unreachable: "deny",
  strict_arguments: false,
  update_reject_after: 1,
  update_max_unreachable: 0,
  reason_to_broadcaster: true,
  require_token: false,
  publish_key: false,
  play: "open",
  play_addresses: [],
  max_bitrate_kbps: 0,
  hold_s: null,
  silence_s: 15,
  health_events: false,
  update_fields: [],
};

/** The body of a PUT: any of the settings, and nothing else. */
export const settingsChange = organisationSettings.partial().strict();

/** The settings that a PUT's body contains. */
export function givenSettings(change: z.output<typeof settingsChange>): Partial<OrganisationSettings> {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}

export async function readSettings(db: Kysely<Schema>, organisationId: string): Promise<OrganisationSettings> {
  const row = await db
    .selectFrom("organisation_setting")
    .select("settings")
    .where("organisation_id", "=", organisationId)
    .executeTakeFirst();
  return { ...DEFAULT_SETTINGS, ...(row === undefined ? {} : JSON.parse(row.settings)) };
}

/** Changes the given settings in the caller's transaction, leaves the others, and returns all. */
export async function changeSettings(
  trx: Kysely<Schema>,
  organisationId: string,
  change: Partial<OrganisationSettings>,
  now: number,
): Promise<OrganisationSettings> {
  const settings = { ...(await readSettings(trx, organisationId)), ...change };
  const row = { settings: JSON.stringify(settings), updated_at: now };
  await trx
    .insertInto("organisation_setting")
    .values({ organisation_id: organisationId, ...row })
    .onConflict((conflict) => conflict.column("organisation_id").doUpdateSet(row))
    .execute();
  return settings;
}
