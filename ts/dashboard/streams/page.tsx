// The streams of the organisation.
import { Page } from "../shell/page.tsx";

export function StreamsPage() {
  return (
    <Page title="Streams">
      <p class="soft">This page is being built.</p>
    </Page>
  );
}
