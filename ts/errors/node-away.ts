// The node that owns the subject of a request does not answer.
import { ServiceError } from "./service-error.ts";

/** Worth retrying: soon the node answers again, or another has ended its publishes. */
export class NodeAway extends ServiceError {
  readonly code = "node_away";
}
