// The people of the organisation.
import { Page } from "../shell/page.tsx";

export function PeoplePage() {
  return (
    <Page title="People">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
