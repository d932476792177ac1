// The refusal of one more event stream.
import { ServiceError } from "../errors.ts";

/** As many event streams are open as an organisation, or the service, may have; or it is stopping. */
export class TooManyReaders extends ServiceError {
  readonly code = "too_many_readers";
}
