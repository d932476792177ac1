// The states of a Webcaster and what leads from one to the next. Pure: the driver asks, this table answers.
// docs/broadcasting.md shows it as a picture.

/**
 * - `idle`: no camera, no microphone, no connection.
 * - `preparing`: the browser is asked for camera and microphone.
 * - `ready`: media is there and can be previewed; nothing is sent.
 * - `connecting`: the service is asked, and the connection is made.
 * - `live`: media flows.
 * - `recovering`: the connection is interrupted; the same broadcast is being resumed (ICE restart).
 * - `reconnecting`: the broadcast was lost; a new one is tried.
 * - `stopping`: the service is told that it is over.
 * - `failed`: it ended with an error; media is still there, `startBroadcast` may be called again.
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

/** What happens to a Webcaster. */
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

/** The state that `event` leads to, or null where it has no place. `dispose` leads to `idle` from everywhere. */
export function next(state: WebcasterState, event: StateEvent): WebcasterState | null {
  return event === "dispose" ? "idle" : (TABLE[state][event] ?? null);
}

/** Whether a broadcast runs or is being made, resumed or ended. */
export function isBroadcasting(state: WebcasterState): boolean {
  return ["connecting", "live", "recovering", "reconnecting", "stopping"].includes(state);
}
