// What a WHIP publish is opened with, and what comes back.
import type { PublishRequest } from "./admission.ts";

export interface WhipPublishRequest extends Omit<PublishRequest, "protocol"> {
  /** The id that its session will have. */
  readonly session: string;
  /** The signalling it came by; absent: WHIP. */
  readonly via?: "v5";
  /** As of `RefusedPublish`. */
  readonly mayMove?: boolean;
}

export interface OpenedWhip {
  readonly outcome: "opened";
  readonly clientId: number;
  readonly answer: string;
}
