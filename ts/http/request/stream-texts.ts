// Title and external id of a stream, as given in a request and as stored.
import { EXTERNAL_ID_LIMIT, readExternalId, readTitle, TITLE_LIMIT } from "../../organisation/titles/stream-titles.ts";
import { text } from "./schema.ts";

export const GivenTitle = text().nullable().openapi({
  description: "For people: without control characters, and trimmed; null for none",
  maxLength: TITLE_LIMIT,
  example: "Evening show",
});
export const GivenExternalId = text()
  .nullable()
  .openapi({
    description:
      "Your own id of the stream: printable characters, trimmed, unique in the organisation among streams that are not " +
      "deleted, and case-sensitive; null for none",
    maxLength: EXTERNAL_ID_LIMIT,
    example: "event-4711",
  });

/** Throws `InvalidValue`. */
export function textsOf(given: {
  readonly title?: string | null | undefined;
  readonly external_id?: string | null | undefined;
}) {
  return { title: readTitle(given.title ?? null), externalId: readExternalId(given.external_id ?? null) };
}
