// Title and explanation of each setting of an organisation. The meaning is defined by the API
// (ts/organisation/settings.ts); the compiler requires a row for every one.
import type { Records } from "../../client/index.ts";

export type Settings = Records["OrganisationSettings"];
export type SettingName = keyof Settings;

interface SettingWords {
  readonly label: string;
  readonly help: string;
}

export const SETTING_WORDS: Readonly<Record<SettingName, SettingWords>> = {
  publish_on_hook_unreachable: {
    label: "When the webhook gives no usable answer",
    help: "What a publish meets when the webhook cannot be reached or does not answer in time.",
  },
  reason_to_broadcaster: {
    label: "Show your reason to the broadcaster",
    help: "The first line of a 403’s text is what the broadcaster reads in the encoder.",
  },
  require_token: {
    label: "Every publish needs a web token",
    help: "A WHIP bearer, or token= in the custom arguments, for that very stream. Without it, whoever knows the stream name may try.",
  },
  strict_arguments: {
    label: "Refuse custom arguments named time or timestamp",
    help: "They are forwarded otherwise: signed URLs use them. The names of Headgate’s own fields are always refused.",
  },
  update_reject_after: {
    label: "Rejected updates in a row that end a publish",
    help: "An update is rejected by any answer but 200. A 403 ends the publish at once.",
  },
  update_max_unreachable: {
    label: "Unanswered updates in a row that end a publish",
    help: "0: none, a broadcast goes on while your server is away.",
  },
  update_fields: {
    label: "More fields in updates",
    help: "Sent with each update, after the documented ones.",
  },
  play: {
    label: "Who may play by RTMP",
    help: "Players that play already go on.",
  },
  play_addresses: {
    label: "Addresses that may play",
    help: "IP addresses, or networks such as 10.0.0.0/8, one on each line; 100 at most.",
  },
  hold_s: {
    label: "Seconds that a lost broadcast is held",
    help: "Upstreams and players wait so long for the broadcaster to come back. 0: not at all.",
  },
  max_bitrate_kbps: {
    label: "Highest video bitrate from browsers, kbps",
    help: "What the video of a WHIP publish is told to stay below, from the next publish on. 0: no limit of its own.",
  },
};

export const PLAY_WORDS: Readonly<Record<Settings["play"], string>> = {
  open: "Whoever knows the stream name",
  token: "Whoever brings a play token",
  addresses: "The addresses below",
};

export const UNREACHABLE_WORDS: Readonly<Record<Settings["publish_on_hook_unreachable"], string>> = {
  deny: "The publish is refused",
  allow: "The publish goes ahead",
};
