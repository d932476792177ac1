// The first page: whether all is well, and if not, what is wrong and where to look.
import { Page } from "../shell/page.tsx";
import { Refused, UsageToday, WebhookLately } from "./last-hour.tsx";
import { LiveNow, UpstreamsNow, useLive } from "./live-now.tsx";

export function OverviewPage() {
  const live = useLive();
  return (
    <Page title="Overview">
      <div class="grid-2 overview">
        <LiveNow {...live} />
        <Refused />
        <WebhookLately />
        <UpstreamsNow {...live} />
        <UsageToday />
      </div>
    </Page>
  );
}
