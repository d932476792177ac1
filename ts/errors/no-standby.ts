// The error for a switch without a standby.
import { ServiceError } from "./service-error.ts";

/** The stream has no publish on standby for the one on air. */
export class NoStandby extends ServiceError {
  readonly code = "no_standby";
}
