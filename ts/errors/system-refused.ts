// A resource that the operating system refused at the start.
import { ServiceError } from "./service-error.ts";

/** A thread, a socket or a poll; the message contains the system's error, and where its limits are set. */
export class SystemRefused extends ServiceError {
  readonly code = "system_refused";
}
