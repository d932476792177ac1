// Who changed what.
import { Page } from "../shell/page.tsx";

export function AuditPage() {
  return (
    <Page title="Audit log">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
