// How a publish or a play by RTMP is refused, and where its broadcaster may go instead.
import type { Denial, MediaCore } from "#native";

/** The refusal sent to a broadcaster or player. */
export interface Refusal {
  readonly code: Denial;
  readonly description: string;
  /** tcUrls of other servers that take the publish (`rtmp://host:port/app`): a broadcaster known to follow redirects is
   *  sent once to the first that is as secure as its present connection. */
  readonly elsewhere?: readonly string[];
}

/** Passes the refusal to the core. */
export function refuse(
  core: Pick<MediaCore, "deny" | "redirect">,
  request: number,
  { code, description, elsewhere = [] }: Refusal,
): void {
  if (elsewhere.length > 0) core.redirect(request, elsewhere, description);
  else core.deny(request, code, description);
}
