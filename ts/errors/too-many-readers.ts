// The refusal of a further event stream.
import { ServiceError } from "./service-error.ts";

/** The limit of open event streams of an organisation, or of the service, is reached; or the service is stopping. */
export class TooManyReaders extends ServiceError {
  readonly code = "too_many_readers";
}
