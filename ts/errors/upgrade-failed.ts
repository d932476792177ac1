// The service was to be followed by a new process, and was not: the running one goes on as before.
import { ServiceError } from "../errors.ts";

export class UpgradeFailed extends ServiceError {
  readonly code = "upgrade_failed";
}
