// Bytes by day and stream.
import { Page } from "../shell/page.tsx";

export function UsagePage() {
  return (
    <Page title="Usage">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
