// Members of a configuration that nothing here reads, most often misspelt: named in the console, once for each name and
// page. They are never an error, because pages written for older clients carry members of those.
import type { AuthConfig, BroadcastConfig, Config, InputConfig, MediaStreamConfig, MutedConfig } from "./config.ts";
import type { ReconnectConfig } from "./pure/reconnect.ts";
import type { RtcUserConfig, TranscodingTargets } from "./v5/settings.ts";

/** By member: `true`, or the members of its value. */
export interface Members {
  readonly [name: string]: true | Members;
}
/** Every member of a configuration; the compiler refuses one that is missing here. */
type MembersOf<T> = { readonly [Name in keyof Required<T>]: true | Members };

const MUTED = { audio: true, video: true } as const satisfies MembersOf<MutedConfig>;
const MEDIA = {
  resolution: true,
  maxFramerate: true,
  audioVideoOnly: true,
  audioDeviceId: true,
  videoDeviceId: true,
  // Browsers know many more constraints than are named here.
  audioConstraints: true,
} as const satisfies MembersOf<MediaStreamConfig>;
const BROADCAST = {
  maxVideoBitrateBps: true,
  maxAudioBitrateBps: true,
  maxEncodingFramerate: true,
  transcodeAudioBitrateBps: true,
} as const satisfies MembersOf<BroadcastConfig>;
const INPUT = {
  mediaStream: true,
  mediaStreamCfg: MEDIA,
  muted: MUTED,
  broadcastCfg: BROADCAST,
} as const satisfies MembersOf<InputConfig>;

export const CONFIG_MEMBERS: Members = {
  serverUrl: true,
  ingestUrl: true,
  streamName: true,
  previewVideoElId: true,
  metrics: true,
  auth: { token: true } satisfies MembersOf<AuthConfig>,
  inputCfg: INPUT,
  reconnect: { minDelaySec: true, maxDelaySec: true, maxRetries: true } satisfies MembersOf<ReconnectConfig>,
} as const satisfies MembersOf<Config>;

export const RTC_USER_MEMBERS: Members = {
  width: true,
  height: true,
  framerate: true,
  videoBitrate: true,
  audioDevice: true,
  videoDevice: true,
} as const satisfies MembersOf<RtcUserConfig>;

export const TARGET_MEMBERS: Members = {
  output: true,
  streamname: true,
  videobitrate: true,
  audiobitrate: true,
  framerate: true,
  rtmpconnectinfo: true,
} as const satisfies MembersOf<TranscodingTargets>;

/** Names of one page; a page that makes up names all the time is no longer told of them. */
const NAMES_LIMIT = 100;
const named = new Set<string>();

/** `what`: whose configuration it is, as people call it. */
export function nameUnknownMembers(what: string, given: unknown, known: Members): void {
  if (typeof given !== "object" || given === null) return;
  const fresh = unknownMembers(given, known).filter((name) => !named.has(`${what} ${name}`));
  if (fresh.length === 0 || named.size >= NAMES_LIMIT) return;
  for (const name of fresh) named.add(`${what} ${name}`);
  const [are, have] = fresh.length === 1 ? ["is", "has"] : ["are", "have"];
  console.warn(`${what}: ${fresh.join(", ")} ${are} unknown and ${have} no effect`);
}

/** With the members that lead to them: `inputCfg.muted.audoi`. */
function unknownMembers(given: object, known: Members): readonly string[] {
  return Object.entries(given).flatMap(([name, value]: [string, unknown]) => {
    const members = Object.hasOwn(known, name) ? known[name] : undefined;
    if (members === undefined) return [name];
    if (members === true || typeof value !== "object" || value === null) return [];
    return unknownMembers(value, members).map((inner) => `${name}.${inner}`);
  });
}
