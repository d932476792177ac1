// The whole deployment, for its operator: the state of the service, and the organisations on it. Refreshed while the
// page is open.
import { Problem } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { type Column, MoreRows, Table } from "../parts/table.tsx";
import { bytesWords } from "../parts/time-words.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded, usePages, useRepeated } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page, Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { Certificates } from "./certificates.tsx";
import { ClusterNodes } from "./cluster-nodes.tsx";
import { NodeStatus } from "./node-status.tsx";

type Deployment = Records["Deployment"];
type Organisation = Records["DeploymentOrganisation"];

/** How often the figures are refreshed, ms. */
const RENEWED_MS = 5_000;
/** Events older than this are waiting for a customer that does not answer, ms. */
const OLD_MS = 60_000;

export function OperatorPage() {
  const status = useLoaded((signal) => answerOf(api.GET("/deployment", { signal })));
  useRepeated(status.reload, RENEWED_MS);
  return (
    <Page title="Deployment" lead="Status and organisations of this Headgate. Only its operator sees this page.">
      <LoadedView of={status} words="Loading the deployment …">
        {(deployment) => (
          <>
            <Health {...deployment} />
            <ClusterNodes nodes={deployment.cluster} />
            {deployment.nodes.map((node) => (
              <NodeStatus key={node.started_at} node={node} />
            ))}
            <Certificates certificates={deployment.certificates} />
          </>
        )}
      </LoadedView>
      <Organisations />
      {status.value !== null && <Limits limits={status.value.limits} />}
    </Page>
  );
}

function Health({ store, outbox }: Deployment) {
  const isOld = outbox !== null && outbox.events > 0 && outbox.oldest_ms > OLD_MS;
  return (
    <Section title="Health">
      <dl class="facts">
        <dt>Store</dt>
        <dd>
          <StatusPill tone={store.healthy ? "good" : "bad"}>{store.healthy ? "Healthy" : "Failing"}</StatusPill>{" "}
          {store.kind === "postgresql" ? "PostgreSQL" : "Embedded"}
          {store.problem !== null && `: ${store.problem}`}
        </dd>
        <dt>Webhook outbox</dt>
        <dd>
          {outbox === null ? (
            <StatusPill tone="bad">Unknown</StatusPill>
          ) : (
            <StatusPill tone={isOld ? "attention" : "good"}>
              {outbox.events === 0 ? "Empty" : `${outbox.events.toLocaleString()} waiting`}
            </StatusPill>
          )}{" "}
          {isOld && `The oldest waits for ${Math.round(outbox.oldest_ms / 60_000)} min: its webhook does not answer.`}
        </dd>
      </dl>
    </Section>
  );
}

function Organisations() {
  const pages = usePages(
    (cursor, signal) =>
      api.GET("/deployment/organisation", { params: { query: cursor === undefined ? {} : { cursor } }, signal }),
    answerOf,
  );
  const { rows: value, error, reload } = pages;
  return (
    <Section title="Organisations" lead="Oldest first. Bytes are for this month (UTC)." plain>
      <LoadedView of={{ value, error, reload }} words="Loading the organisations …">
        {(rows) => (
          <>
            <Table caption="Organisations" rows={rows} keyOf={({ id }) => id} columns={COLUMNS} />
            {error !== null && <Problem title="More organisations could not be loaded">{wordsOfError(error)}</Problem>}
            {pages.hasMore && <MoreRows isLoading={pages.isLoading} onMore={() => void pages.more()} />}
          </>
        )}
      </LoadedView>
    </Section>
  );
}

const COLUMNS: readonly Column<Organisation>[] = [
  {
    title: "Organisation",
    isHead: true,
    cell: ({ name, hash }) => (
      <>
        {name}
        <small class="second mono">{hash}</small>
      </>
    ),
  },
  {
    title: "Plan",
    cell: ({ plan, trial_ends_at }) => (
      <>
        {plan === "trial" ? "Trial" : "Paid"}
        {trial_ends_at !== null && (
          <small class="second">
            ends <TimeText at={trial_ends_at} />
          </small>
        )}
      </>
    ),
  },
  {
    title: "State",
    cell: ({ enabled }) => (
      <StatusPill tone={enabled ? "good" : "attention"}>{enabled ? "Enabled" : "Disabled"}</StatusPill>
    ),
  },
  { title: "Streams", isNumber: true, cell: ({ streams }) => streams.toLocaleString() },
  { title: "Live", isNumber: true, cell: ({ live }) => live.toLocaleString() },
  { title: "Received", isNumber: true, cell: ({ bytes_in }) => bytesWords(bytes_in) },
  { title: "Sent", isNumber: true, cell: ({ bytes_out }) => bytesWords(bytes_out) },
  { title: "Since", cell: ({ created_at }) => <TimeText at={created_at} /> },
];

function Limits({ limits }: Pick<Deployment, "limits">) {
  return (
    <Section title="Limits in force" lead="By setting name. 0 means no limit.">
      <dl class="facts limits">
        {Object.entries(limits).map(([name, limit]) => (
          <div key={name}>
            <dt class="mono">{name}</dt>
            <dd>{limit.toLocaleString()}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
