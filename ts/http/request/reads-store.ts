// Which routes take their turn among the reads of their organisation (organisation/reads/read-limits.ts).
import type { RouteName } from "../../organisation/roles.ts";

/** Routes that last as long as their reader likes, or wait for other nodes: what they read of the store is little. */
const OTHERWISE_LIMITED =
  /^GET \/(organisation\/events|live\/|capture\/|session$|session\/\{client_id\}(\/history)?$|deployment$)/;

export function readsStore(name: RouteName): boolean {
  return name.startsWith("GET ") && !OTHERWISE_LIMITED.test(name);
}
