// The refusal of a read of an organisation that reads more than its share.
import { ServiceError } from "./service-error.ts";

/** The organisation's reads take all of its share of the store. */
export class TooManyReads extends ServiceError {
  readonly code = "too_many_reads";
  /** When to try again, seconds from now. */
  readonly retryAfterS: number;
  constructor(retryAfterS: number) {
    super("the organisation's share of the store is used up");
    this.retryAfterS = retryAfterS;
  }
}
