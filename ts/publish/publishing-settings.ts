// The operator's settings of publishes.
import type { OrganisationLimits } from "../capacity/settings.ts";
import type { AdmissionDeps } from "./admission.ts";
import type { BitrateLimits } from "./bitrate-limit.ts";

export interface PublishingSettings {
  /** Total deadline of one webhook call (W11), ms. */
  readonly deadlineMs: number;
  /** Between an answer and the next update_publish (W14), seconds. */
  readonly updateSeconds: number;
  /** PEM certificates trusted in addition to the public ones, or null. */
  readonly webhookCa: string | null;
  /** Allows http and private webhook addresses (W21). */
  readonly dev: boolean;
  /** RTMP URLs with `{name}` and `{args}` that every publish is pushed to (R4). */
  readonly upstreamPush: readonly string[];
  readonly maxBitrateKbps: BitrateLimits;
  /** Networks that may play; empty allows all. */
  readonly playAllow: readonly string[];
  /** How a publish of a live name is handled (W20). */
  readonly duplicate: "reject_if_active" | "replace";
  readonly holdSeconds: AdmissionDeps["settings"]["holdSeconds"];
  /** Limits of each organisation that has none of its own; absent: no limits. */
  readonly organisationLimits?: OrganisationLimits;
  readonly backupArgument: AdmissionDeps["settings"]["backupArgument"];
}
