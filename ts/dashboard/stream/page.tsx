// One stream.
import { Page } from "../shell/page.tsx";

export function StreamPage({ id }: { readonly id: string }) {
  return (
    <Page title="Stream" back={{ href: "/dashboard/streams", title: "Streams" }}>
      <p class="soft">{id}</p>
    </Page>
  );
}
