// Which running publishes were opened by which web token, so that a revocation ends them (T7). How a publish is ended is
// not known here.
import type { RevocableClaims, Revocations } from "./revocations.ts";

export interface TokenBroadcasts {
  /** A token has opened this publish. One that was revoked meanwhile ends at once. */
  started(claims: RevocableClaims, clientId: number): void;
}

export function createTokenBroadcasts(deps: {
  readonly revocations: Revocations;
  /** Ends a publish because its token was revoked. */
  readonly end: (clientId: number) => void;
  /** Calls back once when the publish has ended, at once when it runs no more. */
  readonly onEnded: (clientId: number, ended: () => void) => void;
}): TokenBroadcasts {
  const { revocations, end, onEnded } = deps;
  const running = new Map<number, RevocableClaims>();
  revocations.listen(() => {
    for (const [clientId, claims] of running) if (revocations.isRevoked(claims)) end(clientId);
  });
  return {
    started(claims, clientId) {
      running.set(clientId, claims);
      onEnded(clientId, () => running.delete(clientId));
      if (running.has(clientId) && revocations.isRevoked(claims)) end(clientId);
    },
  };
}
