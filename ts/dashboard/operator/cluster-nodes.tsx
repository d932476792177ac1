// Every node on the store: whether it serves, what runs on it, and its latest heartbeat.
import { Empty } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { type Column, Table } from "../parts/table.tsx";
import type { Tone } from "../parts/tone.ts";
import type { Records } from "../shell/client.ts";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";

type Node = Records["DeploymentClusterNode"];

const STATES: Readonly<Record<Node["state"], readonly [Tone, words: string]>> = {
  up: ["good", "Up"],
  draining: ["attention", "Draining"],
  stopped: ["quiet", "Stopped"],
  lost: ["bad", "Lost"],
};
/** A heartbeat comes every 2 s: after this long the node is late, ms. It is declared dead after 10 s. */
const LATE_MS = 5_000;

export function ClusterNodes({ nodes }: { readonly nodes: readonly Node[] | null }) {
  return (
    <Section title="Nodes" lead="All nodes that share the store. Stopped and lost nodes are shown for a day." plain>
      {nodes === null ? (
        <Empty title="The nodes are currently unknown" icon="warning">
          The store does not answer. Each node continues with its running publishes.
        </Empty>
      ) : (
        <Table caption="Nodes" rows={nodes} keyOf={({ name }) => name} columns={COLUMNS} />
      )}
    </Section>
  );
}

const isPresent = ({ state }: Node) => state === "up" || state === "draining";

const COLUMNS: readonly Column<Node>[] = [
  {
    title: "Node",
    isHead: true,
    cell: ({ name, answered, http }) => (
      <>
        {name}
        <small class="second">{[answered ? "this one" : "", http ?? ""].filter(Boolean).join(", ")}</small>
      </>
    ),
  },
  {
    title: "State",
    cell: (node) => {
      const [tone, words] = STATES[node.state];
      const isLate = isPresent(node) && node.last_sign_of_life_age_ms > LATE_MS;
      if (isLate) return <StatusPill tone="attention">No sign of life</StatusPill>;
      if (node.state !== "up" || node.full === null) return <StatusPill tone={tone}>{words}</StatusPill>;
      return (
        <>
          <StatusPill tone="attention">Full</StatusPill>
          <small class="second">{node.full.replace(/^full: /, "")}</small>
        </>
      );
    },
  },
  { title: "Version", cell: ({ version }) => version },
  { title: "Publishes", isNumber: true, cell: ({ publishes }) => publishes.toLocaleString() },
  { title: "Load", isNumber: true, cell: (node) => (isPresent(node) ? `${(node.load * 100).toFixed(0)} %` : "—") },
  { title: "Last sign of life", cell: (node) => <TimeText at={node.last_sign_of_life_at} /> },
  { title: "Started", cell: ({ started_at }) => <TimeText at={started_at} /> },
];
