// States and causes of upstreams in words. The compiler requires a row for every one that the API has.
import type { Records } from "../../../client/index.ts";
import type { Tone } from "../../parts/tone.ts";
import type { SessionUpstream } from "../../streams/records.ts";

export type Tested = Records["TestedUpstream"];
type Cause = NonNullable<SessionUpstream["last_cause"]>;
type Step = Tested["steps"][number]["step"];

export const STATES: Readonly<Record<SessionUpstream["state"], readonly [Tone, string]>> = {
  sending: ["good", "Sending"],
  connecting: ["quiet", "Connecting"],
  waiting: ["attention", "Retrying soon"],
  refused: ["bad", "Refused"],
  paused: ["quiet", "Paused"],
};

export const SOURCES: Readonly<Record<SessionUpstream["source"], string>> = {
  stream: "every broadcast",
  session: "this broadcast only",
  deployment: "set by the operator",
  own: "named by the broadcaster",
};

export const CAUSES: Readonly<Record<Cause, string>> = {
  dns: "Name not found",
  address_forbidden: "Address not allowed",
  connection_refused: "No server on that port",
  unreachable: "Not reachable",
  timed_out: "No answer in time",
  tls: "TLS failed",
  rejected: "Rejected by the server",
  closed: "Closed by the server",
  too_slow: "Reads too slowly",
  protocol: "Not RTMP",
  codec_unlisted: "Codec not listed",
  no_room: "Too many connections here",
};

export const STEPS: Readonly<Record<Step, string>> = {
  dns: "Find the address",
  tcp: "Connect",
  tls: "TLS",
  handshake: "RTMP handshake",
  connect: "Open the app",
  publish: "Publish under the stream key",
  media: "Send picture and silence",
};
