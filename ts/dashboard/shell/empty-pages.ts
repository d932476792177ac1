// Pages of filtered lists: one request looks at a bounded number of rows, so a page may be empty and still have a next one.

/** So many empty pages are followed by themselves; then the reader is asked. */
export const FOLLOWED_LIMIT = 5;

/** The first page from `cursor` on that has rows, or the last one loaded. `next`: the cursor behind a page without rows;
 *  null when it has some, or is the last one. */
export async function pastEmptyPages<Cursor, Page>(
  cursor: Cursor,
  load: (cursor: Cursor) => Promise<Page>,
  next: (page: Page) => Cursor | null,
): Promise<Page> {
  let page = await load(cursor);
  for (let followed = 0; followed < FOLLOWED_LIMIT; followed += 1) {
    const behind = next(page);
    if (behind === null) break;
    page = await load(behind);
  }
  return page;
}
