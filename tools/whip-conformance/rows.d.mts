import type { Client } from "./client.mjs";

/** One requirement, one assertion. */
export interface Row {
  /** E: endpoint, S: session, L: Link fields, C: what browsers need. */
  readonly id: string;
  readonly level: "must" | "should" | "may";
  /** Of RFC 9725. */
  readonly section: string;
  readonly says: string;
  /** Throws `Unmet` with what was observed instead, or `NotApplicable`. */
  check(client: Client): Promise<void>;
}
