// What the webhook was sent.
import { Page } from "../shell/page.tsx";

export function DeliveriesPage() {
  return (
    <Page title="Deliveries">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
