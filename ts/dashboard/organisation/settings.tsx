// The switches of the organisation.
import { Page } from "../shell/page.tsx";

export function SettingsPage() {
  return (
    <Page title="Settings">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
