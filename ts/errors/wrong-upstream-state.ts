// The error for what cannot be done to an upstream in its present state.
import { ServiceError } from "./service-error.ts";

/** The message says which state, and what can be done. */
export class WrongUpstreamState extends ServiceError {
  readonly code = "wrong_upstream_state";
}
