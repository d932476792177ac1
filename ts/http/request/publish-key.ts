// Whether publishes of a stream need its publish key, as given in a request.
import { z } from "zod";

export const GivenPublishKey = z.boolean().nullable().openapi({
  description: "Whether publishes need the publish key; null: publish_key of /organisation/settings applies",
  example: true,
});
