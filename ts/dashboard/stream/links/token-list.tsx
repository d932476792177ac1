// The links and tokens of a stream that were created, and how all of them are revoked at once.
import { type Token, TokenTable } from "../../links/token-table.tsx";
import { BusyButton } from "../../parts/busy-button.tsx";
import { confirm } from "../../parts/confirm.tsx";
import { Empty } from "../../parts/states.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { wordsOfError } from "../../shell/errors.ts";
import type { Pages } from "../../shell/loaded.ts";
import { Section } from "../../shell/page.tsx";
import { may } from "../../shell/session.ts";

interface TokenListProps {
  readonly tokens: Pages<Token>;
  /** Of the stream. */
  readonly name: string;
}

export function TokenList({ tokens, name }: TokenListProps) {
  const revokeAll = async () => {
    const does = await confirm({
      title: "Revoke all links and tokens?",
      text: `Nothing that was created for ${name} until now is accepted any more, listed or not, and broadcasts that began with a link or token end now. You can create new ones at once.`,
      does: "Revoke all",
    });
    if (!does) return;
    try {
      await answerOf(api.POST("/webcaster/revoke", { body: { streamname: name } }));
      await tokens.reload();
      say("All links and tokens of the stream are revoked");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title="Created links and tokens"
      lead="Newest first, until 30 days after they expire."
      actions={
        <>
          {may("revoke_token") && (
            <BusyButton class="danger" onPress={revokeAll} busy="Revoking …">
              Revoke all
            </BusyButton>
          )}
          <button type="button" onClick={() => void tokens.reload()}>
            Refresh
          </button>
        </>
      }
      plain
    >
      <TokenTable
        tokens={tokens}
        empty={
          <Empty title="No links or tokens yet" icon="link">
            Those that are created here or by your programs appear here, and can be revoked.
          </Empty>
        }
      />
    </Section>
  );
}
