// One node: its load by worker, what runs on it, and its system resources.
import type { ComponentChildren } from "preact";
import { bytesWords } from "../parts/time-words.ts";
import type { Records } from "../shell/client.ts";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";

type Node = Records["DeploymentNode"];

/** A worker that is busier than this has no reserve for bursts, share of a core. */
const BUSY = 0.8;

export function NodeStatus({ node }: { readonly node: Node }) {
  const { version, started_at, workers, udp_buffer: buffer } = node;
  const isSmall = buffer.granted_bytes < buffer.requested_bytes;
  return (
    <Section
      title="This node"
      lead={
        <>
          Headgate {version}, started <TimeText at={started_at} />
        </>
      }
    >
      <div class="grid-2">
        <div class="stack">
          <h3>Load of the media workers</h3>
          <ul class="workers">
            {workers.map(({ load }, index) => (
              <li key={index}>
                <span id={`worker-${index}`}>Worker {index + 1}</span>
                <meter aria-labelledby={`worker-${index}`} min={0} max={1} high={BUSY} value={load} />
                <span>{(load * 100).toFixed(0)} %</span>
              </li>
            ))}
          </ul>
          {isSmall && (
            <p class="note attention">
              The system grants a UDP receive buffer of {bytesWords(buffer.granted_bytes)} instead of{" "}
              {bytesWords(buffer.requested_bytes)}: bursts of packets may be lost. Raise <code>net.core.rmem_max</code>.
            </p>
          )}
        </div>
        <dl class="facts">{factsOf(node).map(Fact)}</dl>
      </div>
    </Section>
  );
}

function factsOf(node: Node): readonly (readonly [string, ComponentChildren])[] {
  const { sessions, players, audio, media, udp_buffer: buffer } = node;
  return [
    ["Live by RTMP", sessions.rtmp.toLocaleString()],
    ["Live by WHIP", sessions.whip.toLocaleString()],
    ["Players", players.toLocaleString()],
    ["Audio workers", `${audio.workers}, for ${audio.transcoders.toLocaleString()} streams now`],
    ["Failed transcoders", audio.failed.toLocaleString()],
    ["Refused connections", node.refused_connections.toLocaleString()],
    ["Open event streams", node.event_readers.toLocaleString()],
    ["Media addresses", media.addresses.map((address) => <div key={address}>{address}</div>)],
    ["Media ports", media.ports.join(", ")],
    ["UDP receive buffer", bytesWords(buffer.granted_bytes)],
    ["Dropped by the kernel", buffer.kernel_drops === null ? "not known" : buffer.kernel_drops.toLocaleString()],
  ];
}

function Fact([name, value]: readonly [string, ComponentChildren]) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
