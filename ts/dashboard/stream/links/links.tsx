// Who has access to this stream only: creates broadcast links and tokens, and lists and revokes those that exist.
import type { Token } from "../../links/token-table.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { usePages } from "../../shell/loaded.ts";
import { nameOf, type Stream } from "../../streams/records.ts";
import { TokenList } from "./token-list.tsx";
import { TokenMaker } from "./token-maker.tsx";

/** Of one page of the list. */
const QUANTITY = 20;

export function Links({ stream }: { readonly stream: Stream }) {
  const tokens = usePages<Token>(
    (cursor, signal) =>
      api.GET("/token", {
        params: { query: { stream: stream.id, quantity: QUANTITY, ...(cursor === undefined ? {} : { cursor }) } },
        signal,
      }),
    answerOf,
    [stream.id],
  );
  return (
    <>
      <TokenMaker stream={stream} onMade={() => void tokens.reload()} />
      <TokenList tokens={tokens} name={nameOf(stream)} />
    </>
  );
}
