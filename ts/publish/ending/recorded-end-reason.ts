// Why a publish ended, as its record says.
import type { EndReason } from "../../media/codes.ts";

/** Ends that the media core does not know: the gateway died, or the other nodes declared its node dead, the stream was
 *  locked or deleted while the customer was asked, or too many updates had no answer (W16). */
export type RecordedEndReason =
  | EndReason
  | "gateway_restarted"
  | "node_lost"
  | "stream_withdrawn"
  | "customer_unreachable";
