// The last hour in figures: what was refused and why, how the webhook answered; and the bytes of today.
import { refusalWords } from "../../text/refusal-words.ts";
import { dayOf } from "../organisation/usage-sums.ts";
import { StatusPill } from "../parts/status-pill.tsx";
import { bytesWords } from "../parts/time-words.ts";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, pageOf } from "../shell/client.ts";
import { timeNow } from "../shell/clock.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { useRenewed } from "./renewed.ts";
import { byReason, latencyOf } from "./sums.ts";

const HOUR_MS = 3_600_000;
/** Entries that are counted; more are shown as "or more". */
const REFUSALS_LIMIT = 500;
const CALLS_LIMIT = 50;
/** Reasons that are listed. */
const REASONS_LIMIT = 6;

const anHourAgo = (): string => new Date(timeNow() - HOUR_MS).toISOString();

export function Refused() {
  const refused = useRenewed(async (signal) => {
    const from = anHourAgo();
    const call = api.GET("/refusal", { params: { query: { from, quantity: REFUSALS_LIMIT } }, signal });
    const { page, next } = await pageOf(call);
    return { from, reasons: byReason(page), isMore: next !== null };
  });
  return (
    <Section title="Refused in the last hour" actions={<a href="/dashboard/refusals">All refusals</a>}>
      <LoadedView of={refused} words="Counting the refusals …">
        {({ from, reasons, isMore }) => {
          const count = reasons.reduce((sum, reason) => sum + reason.count, 0);
          return (
            <>
              <p class="figure" data-figure="refused">
                <strong>{count.toLocaleString()}</strong>{" "}
                <span>
                  {isMore && "or more "}
                  {count === 1 ? "publish or play" : "publishes and plays"}
                </span>
              </p>
              <ul class="overview-list">
                {reasons.slice(0, REASONS_LIMIT).map(({ reason, count }) => (
                  <li key={reason}>
                    <a href={filteredAddress("/dashboard/refusals", { reason, from })}>{refusalWords(reason).title}</a>{" "}
                    <span class="count">{count.toLocaleString()}</span>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </LoadedView>
    </Section>
  );
}

export function WebhookLately() {
  const webhook = useRenewed(async (signal) => {
    const from = anHourAgo();
    const newest = async (failed: object) => {
      const query = { from, quantity: CALLS_LIMIT, ...failed };
      const { page, next } = await pageOf(api.GET("/organisation/webhook/deliveries", { params: { query }, signal }));
      return { rows: page, isMore: next !== null };
    };
    const [organisation, latest, failures] = await Promise.all([
      answerOf(api.GET("/organisation", { signal })),
      newest({}),
      newest({ failed: "true" }),
    ]);
    return { from, isSet: organisation.webhook !== null, latest, failures };
  });
  return (
    <Section title="Webhook in the last hour" actions={<a href="/dashboard/webhook">Webhook</a>}>
      <LoadedView of={webhook} words="Loading the latest calls …">
        {({ from, isSet, latest, failures }) => {
          if (!isSet) return <p class="soft">None is set: every publish to a stream of yours is allowed.</p>;
          const latency = latencyOf(latest.rows);
          const failed = failures.rows.length;
          return (
            <>
              <p class="figure" data-figure="latency">
                <strong>{latency === null ? "–" : `${latency.median} ms`}</strong>{" "}
                <span>
                  {latency === null
                    ? "no calls"
                    : `median of the latest ${latest.rows.length} calls, the slowest took ${latency.slowest} ms`}
                </span>
              </p>
              {failed === 0 ? (
                latency !== null && (
                  <p class="row">
                    <StatusPill tone="good">No call was refused or failed</StatusPill>
                  </p>
                )
              ) : (
                <p>
                  <a href={filteredAddress("/dashboard/deliveries", { failed: "true", from })}>
                    {failed.toLocaleString()}
                    {failures.isMore && " or more"} refused or failed
                  </a>
                </p>
              )}
            </>
          );
        }}
      </LoadedView>
    </Section>
  );
}

export function UsageToday() {
  const usage = useRenewed((signal) => {
    const today = dayOf(timeNow());
    return answerOf(
      api.GET("/organisation/usage", { params: { query: { from: today, to: today, quantity: 1 } }, signal }),
    );
  });
  return (
    <Section title="Usage today" lead="Since midnight UTC" actions={<a href="/dashboard/usage">Usage</a>}>
      <LoadedView of={usage} words="Loading the usage …">
        {({ total }) => (
          <dl class="facts">
            <dt>Received</dt>
            <dd>{bytesWords(total.bytes_in)}</dd>
            <dt>Sent</dt>
            <dd>{bytesWords(total.bytes_out)}</dd>
          </dl>
        )}
      </LoadedView>
    </Section>
  );
}
