// Which calls go first wherever calls wait: a broadcaster waits for the answer to a publish; an update decides about a
// stream that is live; every other event is only delivered, and copies come last.
import type { Deadline } from "./deadline.ts";

/** The most urgent first. */
export const PRIORITIES = ["publish", "update", "delivery", "copy"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** A call that may have to wait. */
export interface Queued {
  readonly priority: Priority;
  /** When it leaves every queue. */
  readonly deadline: Deadline;
}

/** For queues: 0 is the most urgent. */
export const rankOf = (priority: Priority): number => PRIORITIES.indexOf(priority);

/** The priority of an event of this kind. */
export function priorityOf(call: string): Priority {
  if (call === "publish") return "publish";
  return call === "update_publish" ? "update" : "delivery";
}
