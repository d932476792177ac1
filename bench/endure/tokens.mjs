// R18: forged tokens, roles and tenants at every route, secrets in logs.
import { countTests } from "./_tests.mjs";

export const title = "token vectors, role and tenant at every route, secrets in logs and metrics";

export const endure = () =>
  countTests([
    ...["token-vectors", "token-expiry", "play-token-claims", "whip-token", "route-tenants", "management-roles"],
    ...["log-secrets", "store-secrets", "secret-box"],
  ]);
