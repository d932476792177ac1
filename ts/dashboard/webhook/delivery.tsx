// One delivery.
import { Page } from "../shell/page.tsx";

export function DeliveryPage() {
  return (
    <Page title="Delivery">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
