// The whole deployment, for those who run it.
import { Page } from "../shell/page.tsx";

export function OperatorPage() {
  return (
    <Page title="Deployment">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
