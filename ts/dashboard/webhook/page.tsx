// The webhook of the organisation.
import { Page } from "../shell/page.tsx";

export function WebhookPage() {
  return (
    <Page title="Webhook">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
