// API keys: create, rotate, revoke. A key's text is shown once, from the response that creates it.
import { useState } from "preact/hooks";
import { BusyButton } from "../parts/busy-button.tsx";
import { confirm } from "../parts/confirm.tsx";
import { Empty } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { Table } from "../parts/table.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api, isHeadgateError, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page } from "../shell/page.tsx";
import { ROLE_WORDS } from "../shell/permissions.ts";
import { TimeText } from "../shell/time-text.tsx";
import { NewKeyDialog, ShownKey } from "./new-key.tsx";

type Key = Records["Key"];

/** The name for display. */
const nameOf = ({ label, id }: Key) => label ?? `hg_${id}_…`;

export function KeysPage() {
  const keys = useLoaded(async (signal) => await answerOf(api.GET("/organisation/key", { signal })));
  const [isMaking, setMaking] = useState(false);
  const [shown, setShown] = useState<{ readonly secret: string; readonly title: string } | null>(null);

  const rotate = async (key: Key) => {
    const does = await confirm({
      title: `Replace ${nameOf(key)}?`,
      text: "You get a new key with the same permissions, shown only once. The old key remains valid for another 24 hours, so nothing is interrupted.",
      does: "Create the new key",
    });
    if (!does) return;
    try {
      const path = { id: key.id };
      const made = await answerOf(api.POST("/organisation/key/{id}/rotate", { params: { path } }));
      setShown({ secret: made.key, title: `The new key for ${nameOf(key)}` });
      await keys.reload();
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const revoke = async (key: Key) => {
    const does = await confirm({
      title: `Revoke ${nameOf(key)}?`,
      text: "It stops working at once and for good. Programs that still use it are refused.",
      does: "Revoke the key",
    });
    if (!does) return;
    try {
      await answerOf(api.DELETE("/organisation/key/{id}", { params: { path: { id: key.id } } }));
      keys.change((rows) => rows.filter(({ id }) => id !== key.id));
      say(`${nameOf(key)} is revoked`);
    } catch (error) {
      const isLast = isHeadgateError(error, "invalid_value") && /last administrator/.test(error.message);
      sayProblem(isLast ? LAST_KEY : wordsOfError(error));
    }
  };
  return (
    <Page
      title="API keys"
      lead={
        <>
          Programs send a key in the header <code>x-service-apikey</code>. People sign in with a password and need none.
        </>
      }
      actions={
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          Create a key
        </button>
      }
    >
      <LoadedView of={keys} words="Loading the keys …">
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="There are no keys" icon="keys" />
          ) : (
            <Table
              caption="API keys"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: "Key",
                  isHead: true,
                  cell: (key) => (
                    <>
                      {key.label ?? <span class="soft">no label</span>}
                      <br />
                      <small class="mono nowrap">hg_{key.id}_…</small>
                    </>
                  ),
                },
                { title: "Role", cell: ({ role }) => ROLE_WORDS[role].name },
                {
                  title: "Limited to",
                  cell: ({ scope_tag: tag }) =>
                    tag === null ? <span class="soft">all streams</span> : <span class="tag">{tag}</span>,
                },
                { title: "Made", cell: (key) => <TimeText at={key.created_at} /> },
                { title: "Last used", cell: (key) => <TimeText at={key.last_used_at} /> },
                {
                  title: "Expires",
                  cell: ({ expires_at: at }) => <TimeText at={at} />,
                },
                {
                  title: "What to do with it",
                  isActions: true,
                  cell: (key) =>
                    isLastAdministrator(key, rows) ? (
                      <div class="row end">
                        <span title={LAST_KEY}>
                          <StatusPill tone="quiet">last administrator key</StatusPill>
                        </span>
                        <RotateButton name={nameOf(key)} onPress={() => rotate(key)} />
                      </div>
                    ) : (
                      <div class="row end">
                        <RotateButton name={nameOf(key)} onPress={() => rotate(key)} />
                        <button type="button" class="danger" onClick={() => void revoke(key)}>
                          Revoke<span class="unseen"> {nameOf(key)}</span>
                        </button>
                      </div>
                    ),
                },
              ]}
            />
          )
        }
      </LoadedView>
      <p class="help below">{LAST_KEY}</p>
      {isMaking && (
        <NewKeyDialog
          onClose={() => setMaking(false)}
          onMade={(secret, label) => {
            setMaking(false);
            setShown({ secret, title: label === null ? "The new key" : `The new key “${label}”` });
            void keys.reload();
          }}
        />
      )}
      {shown !== null && <ShownKey {...shown} onClose={() => setShown(null)} />}
    </Page>
  );
}

const LAST_KEY =
  "The last administrator key that covers the whole organisation and does not expire cannot be revoked: without it, no program could manage the organisation. To replace it, rotate it or create another one first.";

/** The key that the API would refuse to revoke. */
function isLastAdministrator(key: Key, keys: readonly Key[]): boolean {
  const administrates = ({ role, scope_tag, expires_at }: Key) =>
    role === "administrator" && scope_tag === null && expires_at === null;
  return administrates(key) && keys.filter(administrates).length === 1;
}

function RotateButton({ name, onPress }: { readonly name: string; readonly onPress: () => Promise<void> }) {
  return (
    <BusyButton onPress={onPress} busy="Replacing …">
      Rotate<span class="unseen"> {name}</span>
    </BusyButton>
  );
}
