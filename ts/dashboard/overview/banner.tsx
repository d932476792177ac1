// What keeps broadcasts out at present, above every page: the webhook fails, or the node takes no new publishes.
import { addressOf } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { TimeText } from "../shell/time-text.tsx";
import { shortWords } from "../webhook/answer-words.ts";
import { useRenewed } from "./renewed.ts";

type Status = Records["OrganisationStatus"];

const REFUSING: Readonly<Record<NonNullable<Status["refuses_publishes"]>, string>> = {
  draining:
    "This Headgate is draining: it takes no new broadcasts. Running ones continue until they end; with several nodes, new ones start on the others.",
  full: "This Headgate is full: it takes no new broadcasts for now. Running ones continue. Its operator needs to add capacity.",
};

/** Announced to screen readers when it appears. */
export function Banner() {
  const { value } = useRenewed((signal) => answerOf(api.GET("/organisation/status", { signal })));
  const { webhook_failure: failure = null, refuses_publishes: refuses = null } = value ?? {};
  return (
    <div class="banners" role="status">
      {failure !== null && (
        <p class="banner">
          <span>
            <strong>Your webhook fails: {wordsOf(failure)}.</strong> The latest call was <TimeText at={failure.at} />.
          </span>
          <a href={addressOf("deliveries", failure.delivery)}>See the call</a>
        </p>
      )}
      {refuses !== null && (
        <p class="banner" data-tone="attention">
          <span>{REFUSING[refuses]}</span>
        </p>
      )}
    </div>
  );
}

function wordsOf({ outcome, status }: NonNullable<Status["webhook_failure"]>): string {
  return outcome === "answered" ? `it answers ${status}` : shortWords({ outcome, status });
}
