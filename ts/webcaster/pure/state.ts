// The states of a Webcaster and their transitions. Pure: a table that the driver consults. docs/broadcasting.md shows
// it as a diagram.

/**
 * - `idle`: no camera, no microphone, no connection.
 * - `preparing`: the browser is opening camera and microphone.
 * - `ready`: media is available and can be previewed; nothing is sent.
 * - `connecting`: the offer is being posted, and the connection set up.
 * - `live`: media flows.
 * - `recovering`: the connection is interrupted; the same broadcast is being resumed (ICE restart).
 * - `reconnecting`: the broadcast was lost; a new one is being started.
 * - `stopping`: the service is being told that the broadcast has ended.
 * - `failed`: it ended with an error; media is still available, `startBroadcast` may be called again.
 */
export type WebcasterState =
  | "idle"
  | "preparing"
  | "ready"
  | "connecting"
  | "live"
  | "recovering"
  | "reconnecting"
  | "stopping"
  | "failed";

/** The events of a Webcaster. */
export type StateEvent =
  | "setup"
  | "media_opened"
  | "media_refused"
  | "start"
  | "connected"
  | "interrupted"
  | "lost"
  | "gave_up"
  | "stop"
  | "stopped"
  | "dispose";

const TABLE: Readonly<Record<WebcasterState, Partial<Readonly<Record<StateEvent, WebcasterState>>>>> = {
  idle: { setup: "preparing" },
  preparing: { media_opened: "ready", media_refused: "idle" },
  ready: { start: "connecting" },
  connecting: { connected: "live", gave_up: "failed", stop: "stopping" },
  live: { interrupted: "recovering", lost: "reconnecting", gave_up: "failed", stop: "stopping" },
  recovering: { connected: "live", lost: "reconnecting", gave_up: "failed", stop: "stopping" },
  reconnecting: { connected: "live", gave_up: "failed", stop: "stopping" },
  stopping: { stopped: "ready" },
  failed: { start: "connecting" },
};

/** The state after `event`, or null where it is not valid. `dispose` leads to `idle` from everywhere. */
export function next(state: WebcasterState, event: StateEvent): WebcasterState | null {
  return event === "dispose" ? "idle" : (TABLE[state][event] ?? null);
}

/** Whether `recover` starts a broadcast again: one that was stopped deliberately stays stopped. */
export function resumes(state: WebcasterState): boolean {
  return state === "failed" || (isBroadcasting(state) && state !== "stopping");
}

/** Whether a broadcast is running, or being started, resumed or ended. */
export function isBroadcasting(state: WebcasterState): boolean {
  return ["connecting", "live", "recovering", "reconnecting", "stopping"].includes(state);
}
