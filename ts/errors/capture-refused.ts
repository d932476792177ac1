// The refusal of a capture.
import { ServiceError } from "./service-error.ts";

/** Captures are disabled, the limit of concurrent captures is reached, or the file cannot be created; the message says
 *  which. */
export class CaptureRefused extends ServiceError {
  readonly code = "capture_refused";
}
