// The present players of the stream.
import { Table } from "../parts/table.tsx";
import { bytesWords, counted } from "../parts/time-words.ts";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import type { Session } from "../streams/records.ts";

type Player = Session["players"][number];

interface PlayersProps {
  readonly players: readonly Player[];
  /** Includes those beyond the thousand that are listed. */
  readonly count: number;
}

export function Players({ players, count }: PlayersProps) {
  return (
    <Section
      title="Players"
      lead={
        count === 0 ? "Nobody is playing it. Upstreams and previews are not counted here." : counted(count, "player")
      }
      plain
    >
      {players.length > 0 && (
        <Table
          caption="Players"
          rows={players}
          keyOf={({ address, since }) => `${address} ${since}`}
          columns={[
            { title: "Address", isHead: true, cell: ({ address }) => <span class="mono">{address}</span> },
            { title: "Since", cell: ({ since }) => <TimeText at={since} /> },
            { title: "Sent", isNumber: true, cell: ({ bytes_out }) => bytesWords(bytes_out) },
            { title: "Lost frames", isNumber: true, cell: ({ dropped_frames }) => dropped_frames.toLocaleString() },
          ]}
        />
      )}
    </Section>
  );
}
