// The error for a switch without a standby.
import { ServiceError } from "../errors.ts";

/** No publish of the stream stands by for the one on air. */
export class NoStandby extends ServiceError {
  readonly code = "no_standby";
}
