// Shown at a path without a page, and at one whose page the role may not see: the same for both.
import { Page } from "./page.tsx";

export function NoSuchPage() {
  return (
    <Page title="There is no such page">
      <p>
        The address may be mistyped, or your role may not have access to this page.{" "}
        <a href="/dashboard/streams">To the streams</a>
      </p>
    </Page>
  );
}
