// Whoever is signed in.
import { Page } from "../shell/page.tsx";

export function AccountPage() {
  return (
    <Page title="Your account">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
