// The API keys of the organisation.
import { Page } from "../shell/page.tsx";

export function KeysPage() {
  return (
    <Page title="API keys">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
