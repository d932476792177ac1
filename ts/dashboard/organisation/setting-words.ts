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
    help: "What happens to a publish when the webhook cannot be reached or does not answer in time.",
  },
  reason_to_broadcaster: {
    label: "Show your reason to the broadcaster",
    help: "The first line of a 403 response’s body is shown to the broadcaster in the encoder.",
  },
  require_token: {
    label: "Every publish needs a web token",
    help: "A WHIP bearer, or token= in the custom arguments, for that stream. Otherwise anyone who knows the stream name can try to publish.",
  },
  publish_key: {
    label: "Every publish needs the publish key",
    help: "The addresses of each stream then end in a secret of their own, so that who plays a stream cannot publish to it. Copy them into the encoders again; broadcasts that are live continue. A stream can have its own setting.",
  },
  strict_arguments: {
    label: "Refuse custom arguments named time or timestamp",
    help: "Otherwise they are forwarded, because signed URLs use them. The names of Headgate’s own fields are always refused.",
  },
  update_reject_after: {
    label: "Rejected updates in a row that end a publish",
    help: "Any answer except 200 rejects an update. A 403 ends the publish at once.",
  },
  update_max_unreachable: {
    label: "Unanswered updates in a row that end a publish",
    help: "0: never; a broadcast continues while your server cannot be reached.",
  },
  health_events: {
    label: "Send alerts to the webhook",
    help: "It is also called with call=health when a live stream has no media or an upstream is lost, and when they are back. The answer decides nothing.",
  },
  update_fields: {
    label: "Additional fields in updates",
    help: "Sent with each update, after the documented ones.",
  },
  play: {
    label: "Who may play by RTMP",
    help: "Players that already play continue.",
  },
  play_addresses: {
    label: "Addresses that may play",
    help: "IP addresses, or networks such as 10.0.0.0/8, one per line; at most 100.",
  },
  hold_s: {
    label: "How long a lost broadcast is held, in seconds",
    help: "Upstreams and players wait this long for the broadcaster to come back, from the next publish on. 0: not at all. Empty: the service default.",
  },
  silence_s: {
    label: "How long an RTMP broadcaster may send nothing, in seconds",
    help: "After that its publish counts as lost, from the next publish on. Raise it for slide shows with a picture now and then.",
  },
  max_bitrate_kbps: {
    label: "Highest video bitrate from browsers, kbps",
    help: "Limit for the video of WHIP publishes, from the next publish on. 0: no limit of the organisation.",
  },
};

export const PLAY_WORDS: Readonly<Record<Settings["play"], string>> = {
  open: "Anyone who knows the name",
  token: "Anyone with a play token",
  addresses: "The addresses below",
};

export const UNREACHABLE_WORDS: Readonly<Record<Settings["publish_on_hook_unreachable"], string>> = {
  deny: "The publish is refused",
  allow: "The publish goes ahead",
};
