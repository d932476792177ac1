// Links and tokens that were created, newest first, and how one is revoked. Their texts are not kept.
import type { ComponentChildren } from "preact";
import { PagedTable } from "../lists/paged-table.tsx";
import { whoWords } from "../lists/who-words.ts";
import { BusyButton } from "../parts/busy-button.tsx";
import { confirm } from "../parts/confirm.tsx";
import { StatusPill, type Tone } from "../parts/status-pill.tsx";
import type { Column } from "../parts/table.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { addressOf, filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import type { Pages } from "../shell/loaded.ts";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";

export type Token = Records["Token"];

const KINDS: Readonly<Record<Token["kind"], readonly [title: string, consequence: string]>> = {
  broadcast: ["Broadcast link", "Nobody can broadcast with it any more, and a broadcast that began with it ends now."],
  play: ["Address for players", "Nobody can begin to play with it any more. Players that already play continue."],
};
const STATES: Readonly<Record<Token["state"], readonly [Tone, string]>> = {
  valid: ["good", "Valid"],
  expired: ["quiet", "Expired"],
  revoked: ["bad", "Revoked"],
};

interface TokenTableProps {
  readonly tokens: Pages<Token>;
  /** Whether they are of several streams. */
  readonly hasStreams?: boolean;
  /** Shown in place of an empty list. */
  readonly empty: ComponentChildren;
}

export function TokenTable({ tokens, hasStreams = false, empty }: TokenTableProps) {
  const revoke = async (token: Token) => {
    const [title, text] = KINDS[token.kind];
    if (!(await confirm({ title: `Revoke the ${title.toLowerCase()}?`, text, does: "Revoke it" }))) return;
    try {
      const revoked = await answerOf(api.DELETE("/token/{id}", { params: { path: { id: token.id } } }));
      tokens.change((rows) => rows.map((row) => (row.id === revoked.id ? revoked : row)));
      say(`The ${title.toLowerCase()} is revoked`);
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const [created, ...others] = columns(revoke);
  return (
    <PagedTable
      pages={tokens}
      caption="Links and tokens"
      columns={[created, ...(hasStreams ? [STREAM] : []), ...others]}
      keyOf={({ id }) => id}
      loading="Loading the links and tokens …"
      failed="More links and tokens could not be loaded"
      empty={empty}
    />
  );
}

const STREAM: Column<Token> = {
  title: "Stream",
  cell: ({ stream, streamname }) =>
    stream === null ? (
      <>
        <span class="mono">{streamname}</span>
        <small class="second">No stream has this name</small>
      </>
    ) : (
      <a class="mono nowrap" href={filteredAddress(addressOf("streams", stream.id), { tab: "links" })}>
        {stream.name}
      </a>
    ),
};

function columns(revoke: (token: Token) => Promise<void>): readonly [Column<Token>, ...Column<Token>[]] {
  return [
    { title: "Created", isHead: true, cell: ({ created_at }) => <TimeText at={created_at} /> },
    {
      title: "What",
      cell: ({ kind, made_by }) => (
        <>
          {KINDS[kind][0]}
          <small class="second">By {whoWords(made_by)}</small>
        </>
      ),
    },
    {
      title: "State",
      cell: ({ state, revoked_at }) => (
        <>
          <StatusPill tone={STATES[state][0]}>{STATES[state][1]}</StatusPill>
          {revoked_at !== null && (
            <small class="second">
              <TimeText at={revoked_at} />
            </small>
          )}
        </>
      ),
    },
    { title: "Valid until", cell: ({ expires_at }) => <TimeText at={expires_at} /> },
    { title: "Last used", cell: ({ last_used_at }) => <TimeText at={last_used_at} /> },
    {
      title: "Actions",
      isActions: true,
      cell: (token) =>
        token.state === "valid" &&
        may("revoke_token") && (
          <BusyButton class="small" onPress={() => revoke(token)} busy="Revoking …">
            Revoke<span class="unseen"> the {KINDS[token.kind][0].toLowerCase()}</span>
          </BusyButton>
        ),
    },
  ];
}
