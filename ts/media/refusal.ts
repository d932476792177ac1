// How a publish or a play that came by RTMP is refused, and where its broadcaster may go instead.

/** What a broadcaster or player is told. */
export interface Refusal {
  readonly code: "denied" | "bad_name";
  readonly description: string;
  /** tcUrls of other servers that take the publish (`rtmp://host:port/app`): a broadcaster that is known to follow is sent
   *  to the first that is as safe as the one it came by, once. */
  readonly elsewhere?: readonly string[];
}

/** Tells the core. */
export function refuse(
  core: {
    deny(request: number, code: string, description: string): void;
    redirect(request: number, tcUrls: string[], description: string): void;
  },
  request: number,
  { code, description, elsewhere = [] }: Refusal,
): void {
  if (elsewhere.length > 0) core.redirect(request, [...elsewhere], description);
  else core.deny(request, code, description);
}
