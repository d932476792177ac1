// R17: every form of a forbidden address, and a name server whose answers change.
import { countTests } from "./_tests.mjs";

export const title = "forbidden addresses of webhooks and upstreams in every form; rebinding names";

export const endure = () =>
  countTests(["webhook-address-forms", "publish-address-guard", "webhook-url", "stream-url", "resolver"]);
