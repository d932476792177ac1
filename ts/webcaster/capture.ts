// Opens camera, microphone and screen in the browser, and translates its errors.
import type { MediaStreamConfig, ResultConfig } from "./config.ts";
import { type ErrorName, WebcasterError } from "./pure/errors.ts";

/** By the name of the DOMException (W3C mediacapture-streams, screen-capture). */
const REFUSALS: Readonly<Record<string, ErrorName>> = {
  NotAllowedError: "permission_denied",
  SecurityError: "permission_denied",
  NotFoundError: "device_missing",
  NotReadableError: "device_busy",
  AbortError: "device_busy",
  OverconstrainedError: "device_unsuitable",
};

/** The constraints for the browser. */
export function constraintsOf(config: ResultConfig["inputCfg"]["mediaStreamCfg"]): MediaStreamConstraints {
  const { audioVideoOnly } = config;
  return {
    audio: audioVideoOnly === "video" ? false : audioConstraints(config),
    video: audioVideoOnly === "audio" ? false : videoConstraints(config),
  };
}

function audioConstraints({ audioConstraints: wanted, audioDeviceId }: MediaStreamConfig): MediaTrackConstraints {
  return { ...wanted, ...(audioDeviceId ? { deviceId: { exact: audioDeviceId } } : {}) };
}

function videoConstraints({
  resolution: [width, height],
  maxFramerate,
  videoDeviceId,
}: ResultConfig["inputCfg"]["mediaStreamCfg"]): MediaTrackConstraints {
  return {
    width: { ideal: width },
    height: { ideal: height },
    frameRate: { ideal: maxFramerate },
    ...(videoDeviceId ? { deviceId: { exact: videoDeviceId } } : {}),
  };
}

/** Camera and microphone; throws a WebcasterError. */
export async function openDevices(constraints: MediaStreamConstraints): Promise<MediaStream> {
  if (!globalThis.isSecureContext) throw new WebcasterError("page_not_secure");
  if (!navigator.mediaDevices?.getUserMedia) throw new WebcasterError("webrtc_missing");
  try {
    return await navigator.mediaDevices.getUserMedia(constraints);
  } catch (error) {
    throw refusalOf(error, "media_failed");
  }
}

/** A screen, window or tab chosen by the broadcaster; throws a WebcasterError. */
export async function openScreen(options: DisplayMediaStreamOptions): Promise<MediaStream> {
  if (!navigator.mediaDevices?.getDisplayMedia) throw new WebcasterError("screen_denied", { detail: "not supported" });
  try {
    return await navigator.mediaDevices.getDisplayMedia(options);
  } catch (error) {
    const refused = refusalOf(error, "media_failed");
    throw refused.reason === "permission_denied" ? new WebcasterError("screen_denied", { cause: error }) : refused;
  }
}

function refusalOf(error: unknown, fallback: ErrorName): WebcasterError {
  const { name = "", message = "" } = error instanceof Error ? error : {};
  // The browser's message is included only where it is more specific than ours.
  const reason = REFUSALS[name] ?? fallback;
  const detail = reason === fallback ? message : null;
  return new WebcasterError(reason, { detail, cause: error });
}
