// The node that has what a request is about does not answer.
import { ServiceError } from "../errors.ts";

/** Come back: in a moment the node answers, or another has ended what it had. */
export class NodeAway extends ServiceError {
  readonly code = "node_away";
}
