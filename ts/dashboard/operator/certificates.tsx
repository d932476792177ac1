// The certificates of HTTPS and RTMPS, and when they expire.
import { Empty } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { Table } from "../parts/table.tsx";
import type { Records } from "../shell/client.ts";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";

type Certificate = Records["Deployment"]["certificates"][number];

/** A certificate that expires sooner should already have been renewed, days. */
const SOON_DAYS = 14;

export function Certificates({ certificates }: { readonly certificates: readonly Certificate[] }) {
  return (
    <Section title="Certificates" plain>
      {certificates.length === 0 ? (
        <Empty title="No certificate is set" icon="keys">
          HTTPS and RTMPS are off. A proxy may provide them; otherwise set http.tls_cert and http.tls_key.
        </Empty>
      ) : (
        <Table
          caption="Certificates"
          rows={certificates}
          keyOf={({ section }) => section}
          columns={[
            { title: "For", isHead: true, cell: ({ section }) => (section === "http" ? "HTTPS" : "RTMPS") },
            { title: "Names", cell: ({ names }) => names ?? "—" },
            { title: "Issuer", cell: ({ issuer }) => issuer ?? "—" },
            { title: "Ends", cell: ({ ends_at }) => <TimeText at={ends_at} none="not known" /> },
            { title: "State", cell: State },
          ]}
        />
      )}
    </Section>
  );
}

function State({ days_left: days, problems }: Certificate) {
  if (problems.length > 0) return <span class="failing">{problems.join(" ")}</span>;
  if (days !== null && days < 0) return <StatusPill tone="bad">Expired</StatusPill>;
  if (days !== null && days < SOON_DAYS) return <StatusPill tone="attention">{`Expires in ${days} days`}</StatusPill>;
  return <StatusPill tone="good">Valid</StatusPill>;
}
