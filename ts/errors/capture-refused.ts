// The refusal of a capture.
import { ServiceError } from "../errors.ts";

/** Captures are off here, or as many run as may, or the file cannot be made; the message says which. */
export class CaptureRefused extends ServiceError {
  readonly code = "capture_refused";
}
