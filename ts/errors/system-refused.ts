// What the operating system did not give at the start.
import { ServiceError } from "../errors.ts";

/** A thread, a socket or a poll; the message says what the system said, and where its limits are. */
export class SystemRefused extends ServiceError {
  readonly code = "system_refused";
}
