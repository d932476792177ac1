// What a status of the customer's webhook says, and an answer that allows nothing in words for the people of the organisation: whose decision or
// failure it was. For the service, the command line and the dashboard; broadcasters are told less (publish/denials.ts).

/** Whether the customer's server failed, as opposed to having decided. */
export const hasFailed = (status: number): boolean => status >= 500;

/** Whether the status of an answer to publish_done settles it (W17); null: there was no answer. */
export const settlesDone = (status: number | null): boolean =>
  status !== null && ((status >= 200 && status < 300) || status === 410);

/** Whether a call shows that the webhook fails, as opposed to having decided; null: there was no answer. */
export function isFailedCall(call: string, status: number | null): boolean {
  const needsDecision = call === "publish" || call === "update_publish";
  return needsDecision ? status !== 200 && status !== 403 : !settlesDone(status);
}

/** What the webhook did with a publish: a clause with the status, and `more` beside it (`after 12 ms`). */
export function denialClause(status: number, more = ""): string {
  const about = more === "" ? `status ${status}` : `status ${status}, ${more}`;
  if (hasFailed(status)) return `your webhook failed (${about})`;
  return status === 403 ? `your webhook denied it (${about})` : `your webhook denied it (${about}; only 200 allows)`;
}

export const sentence = (clause: string): string => `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
