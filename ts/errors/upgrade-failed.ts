// The handover to a new process failed; the running service continues as before.
import { ServiceError } from "./service-error.ts";

export class UpgradeFailed extends ServiceError {
  readonly code = "upgrade_failed";
}
