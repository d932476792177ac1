// Texts for people when something does not work: what happened, and what they can do about it themselves.
import type { ErrorName, WebcasterError } from "../webcaster/pure/errors.ts";

export interface Notice {
  /** An error prevents broadcasting; a warning does not. */
  readonly tone: "error" | "warning";
  readonly title: string;
  /** A text written by somebody else, shown as a quotation: the customer's reason. */
  readonly quote?: string;
  readonly remedy: string;
  /** The field of the page that has to be corrected. */
  readonly field?: "name" | "address";
}

const error = (title: string, remedy: string): Notice => ({ tone: "error", title, remedy });
const warning = (title: string, remedy: string): Notice => ({ tone: "warning", title, remedy });

/** Browsers allow cameras only on pages of HTTPS and of the local machine. */
export const INSECURE = error(
  "The camera needs a secure page",
  "Open this page by its https:// address. Browsers allow camera and microphone only there.",
);
export const BROKEN_LINK = error(
  "This link is incomplete",
  "It was probably cut off when it was copied or sent. Open it again from the original message, or ask for a new one.",
);
export const EXPIRED_LINK = error("This link has expired", "Ask the person who sent it to you for a new one.");
export const NO_STREAM_NAME: Notice = {
  ...error("The stream name is missing", "Enter the name of the stream to go live on."),
  field: "name",
};
export const NO_ADDRESS: Notice = {
  ...error("The address is not complete", "It should look like rtmp://host:1935/live."),
  field: "address",
};
export const NO_MICROPHONE = warning(
  "No microphone found",
  "Your broadcast will have no audio. To change that, connect a microphone and choose it.",
);
export const NO_VIDEO = warning(
  "Your broadcast has no video",
  "Viewers can only hear you. To add video, end the broadcast and start it again.",
);
export const NOTHING_TO_SEND = error(
  "There is nothing to send",
  "Choose a camera, your screen or a microphone. One that was disconnected can be connected again.",
);
export const NOTHING_SHARED = warning(
  "Nothing is shared yet",
  "Choose a screen, a window or a tab when your browser asks.",
);
export const SCREEN_ENDED = warning("Your screen is no longer shared", "Share it again, or choose Camera.");
export const CAMERA_LOST = warning("The camera was disconnected", "Connect it again, or choose another one.");
export const MICROPHONE_LOST = warning("The microphone was disconnected", "Connect it again, or choose another one.");

/** Why a camera or microphone was not opened, by the name of the browser's exception (Media Capture and Streams,
 *  section 10.2). Null where people caused it themselves and know. */
const DEVICES: Readonly<Record<string, Notice>> = {
  NotAllowedError: error(
    "Camera and microphone are blocked",
    "Allow them for this page: use the camera or lock symbol beside its address, then try again. If they are allowed " +
      "there, allow your browser to use them in the settings of this device.",
  ),
  NotFoundError: error(
    "No camera found",
    "Connect a camera and try again, or choose Screen to show your screen instead.",
  ),
  NotReadableError: error(
    "The camera or microphone cannot be opened",
    "Another program, such as a video call, is probably using it. Close it and try again.",
  ),
  OverconstrainedError: error("This camera is no longer available", "Choose another one and try again."),
};

/** The notice for a device that could not be opened. */
export function deviceNotice(name: string): Notice {
  return DEVICES[name] ?? DEVICES.NotReadableError ?? INSECURE;
}

const LATER = "Try again in a moment.";
const NEW_LINK = "Ask the person who sent you the link for a new one.";

/** By the code of the problem document that refused the broadcast (docs/whip.md). */
const REFUSALS: Readonly<Record<string, Notice>> = {
  rejected_by_customer: error("The broadcast was refused", "Ask the person who invited you to broadcast."),
  customer_unreachable: error(
    "The broadcast could not be authorised",
    "The organiser's server did not answer. Try again in a moment; if it happens again, tell the organiser.",
  ),
  unknown_stream: {
    ...error("There is no stream with this name", "Check it letter by letter: upper and lower case matter."),
    field: "name",
  },
  malformed_name: { ...error("This stream name is not valid", "Copy it again from where you got it."), field: "name" },
  reserved_field: {
    ...error("This stream name is not valid", "The part after the ? uses a reserved name."),
    field: "name",
  },
  bad_stream_url: {
    ...error("This address is not accepted", "Check it with the person who gave it to you."),
    field: "address",
  },
  too_many_names: error("Too many wrong names came from your network", LATER),
  locked_stream: error("This stream is locked", "Ask its owner to unlock it."),
  already_live: error("This stream is already live", "Another device is broadcasting to it. End that broadcast first."),
  organisation_disabled: error("This stream's organisation is not enabled", "Ask its owner."),
  token_required: error("This stream needs a link", "Ask its owner for a broadcast link and open it."),
  key_missing: {
    ...error("The publish key is missing", "Copy the whole stream key again: the name and ?key=… at its end."),
    field: "name",
  },
  key_wrong: {
    ...error("The publish key is not valid", "It is mistyped, or was renewed. Ask the stream's owner for the new one."),
    field: "name",
  },
  bad_token: error("This link is not valid", NEW_LINK),
  token_mismatch: error("This link is for another stream", NEW_LINK),
  stopped: error("The organiser ended the broadcast", "Ask them before you try again."),
  refused_after_end: error("The organiser ended the broadcast", "Ask them before you try again."),
  too_many_requests: error("Too many attempts from your network", LATER),
  overloaded: error("The service is busy", LATER),
  stopping: error("The service is restarting", LATER),
  full: error("The service is busy", LATER),
  too_many_streams: error("Too many streams are live", "End another broadcast first, or ask the owner of the stream."),
  too_much_bitrate: error("Too many streams are live", "End another broadcast first, or ask the owner of the stream."),
  too_many_setups: error("Too many broadcasts are starting at once", LATER),
  store_unavailable: error("The service cannot accept a new broadcast right now", LATER),
  store_failed: error("The service cannot accept a new broadcast right now", LATER),
  node_away: error("The service cannot accept a new broadcast right now", LATER),
  internal_error: error("Something went wrong in the service", LATER),
};
/** By the code of the problem document with which an ended session answers (docs/whip.md). */
const ENDS: Readonly<Record<string, Notice>> = {
  ended_by_person: error("The organiser ended the broadcast", "Ask them before you go live again."),
  ended_by_api: error("The organiser ended the broadcast", "Ask them before you go live again."),
  ended_by_customer: error("The organiser's server ended the broadcast", "Ask the person who invited you."),
  token_revoked: error("This link was withdrawn", NEW_LINK),
  stream_locked: REFUSALS.locked_stream as Notice,
  stream_deleted: error("This stream was deleted", "Ask its owner for another one."),
  ended_by_operator: REFUSALS.organisation_disabled as Notice,
  ended_by_broadcaster: error("The broadcast was ended", "Somebody with its address ended it."),
  replaced: error("Another broadcast took over this stream", "End that one before you go live again."),
  update_unanswered: REFUSALS.customer_unreachable as Notice,
  broadcast_lost: error("The connection was lost", "Check your internet connection, then broadcast again."),
  service_stopped: error("The service was restarted", LATER),
  upstream_refused: error("The receiving server refused the broadcast", "Ask the person who invited you."),
};
/** By the token service's reason (T3), where that is more specific than "not valid". */
const TOKEN_FAULTS: Readonly<Record<string, Notice>> = {
  "jwt expired": EXPIRED_LINK,
  "jwt revoked": error("This link was withdrawn", NEW_LINK),
  "jwt not active": error("This link is not valid yet", "It becomes valid later. Ask the person who sent it when."),
};

/** Errors detected by the client package itself, by their name (docs/broadcasting.md). */
const FAULTS: { readonly [reason in ErrorName]?: Notice } = {
  permission_denied: deviceNotice("NotAllowedError"),
  webrtc_missing: error("This browser cannot broadcast", "Use a current Chrome, Edge, Firefox or Safari."),
  h264_missing: error(
    "This browser cannot send H.264 video",
    "Use Chrome, Edge or Safari. In Firefox, allow the OpenH264 plug-in (about:addons, Plugins) and reload this page.",
  ),
  opus_missing: error("This browser cannot send Opus audio", "Use a current Chrome, Edge, Firefox or Safari."),
  unreachable: error("The service cannot be reached", "Check your internet connection, then try again."),
  no_media_path: error(
    "Video and audio cannot get through",
    "This network lets the page through, but not your video: a firewall probably blocks UDP. Try another network, such " +
      "as your phone's hotspot, or ask the administrator of this one.",
  ),
  connection_lost: error("The connection was lost", "Check your internet connection, then broadcast again."),
  reconnect_failed: error("The connection was lost", "It did not come back. Check your network, then broadcast again."),
  ended: error("The broadcast was ended by the organiser", "Ask them before you go live again."),
  ended_by_service: error("The broadcast was ended by the organiser", "Ask them before you go live again."),
  stream_unknown: REFUSALS.unknown_stream as Notice,
  stream_taken: REFUSALS.already_live as Notice,
  too_many_requests: REFUSALS.too_many_requests as Notice,
};

/** Refusals and ends with the words of a person or the customer, and the service's own texts where they gave none. */
const QUOTED = [
  "rejected_by_customer",
  "stopped",
  "refused_after_end",
  "ended_by_person",
  "ended_by_api",
  "ended_by_customer",
];
const NO_REASON = [
  "Publish denied",
  "Publish was ended by the operator",
  "Publish ended by the customer",
  "Stream was stopped",
  "Stream was locked",
  "Stream was deleted",
  "Token revoked",
  "Organisation is not enabled",
];

/** The notice for a broadcast that was refused or failed. */
export function failureNotice({
  reason,
  problem,
  detail,
}: Pick<WebcasterError, "reason" | "problem" | "detail">): Notice {
  if (problem === "bad_token") return tokenNotice(detail ?? "");
  const refused = ENDS[problem ?? ""] ?? REFUSALS[problem ?? ""] ?? FAULTS[reason];
  if (QUOTED.includes(problem ?? "") && refused !== undefined && detail && !NO_REASON.includes(detail)) {
    return { ...refused, quote: detail };
  }
  return refused ?? { ...error("The broadcast could not start", LATER), ...(detail ? { quote: detail } : {}) };
}

/** The notice for an invalid token, by the token service's reason. */
export function tokenNotice(fault: string): Notice {
  return TOKEN_FAULTS[fault] ?? (REFUSALS.bad_token as Notice);
}
