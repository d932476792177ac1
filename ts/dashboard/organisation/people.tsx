// The people of the organisation: add, change role or password, remove.
import { useState } from "preact/hooks";
import { confirm } from "../parts/confirm.tsx";
import { Table } from "../parts/table.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api, isHeadgateError, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page } from "../shell/page.tsx";
import { ROLE_WORDS, type Role } from "../shell/permissions.ts";
import { me, startSession } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import { AddPersonDialog, PasswordDialog } from "./person-dialogs.tsx";

type Person = Records["User"];

const LAST_ADMINISTRATOR =
  "This is the last administrator. Make someone else an administrator first: an organisation always has at least one.";

const LAST_WITH_PASSWORD =
  "This is the last administrator with a password, who can sign in while the identity provider fails. Give another administrator a password first.";

export function PeoplePage() {
  const people = useLoaded(async (signal) => await answerOf(api.GET("/organisation/user", { signal })));
  const [isAdding, setAdding] = useState(false);
  const [newPasswordOf, setNewPasswordOf] = useState<Person | null>(null);
  const own = me().id;

  const replace = (person: Person) =>
    people.change((rows) => rows.map((other) => (other.id === person.id ? person : other)));
  const refused = (error: unknown) => {
    const isLast = isHeadgateError(error, "invalid_value") && /last administrator/.test(error.message);
    const words = isLast && /with a password/.test(error.message) ? LAST_WITH_PASSWORD : LAST_ADMINISTRATOR;
    sayProblem(isLast ? words : wordsOfError(error));
  };
  const changeRole = async (person: Person, role: Role) => {
    if (person.id === own && role !== "administrator") {
      const does = await confirm({
        title: "Give up your own administrator role?",
        text: `You become ${ROLE_WORDS[role].name.toLowerCase()} at once, and only another administrator can take it back.`,
        does: "Give it up",
      });
      if (!does) return replace({ ...person });
    }
    replace({ ...person, role }); // shown immediately; reverted when it is refused
    try {
      const path = { id: person.id };
      replace(await answerOf(api.PUT("/organisation/user/{id}", { params: { path }, body: { role } })));
      say(`${person.email} is ${ROLE_WORDS[role].name.toLowerCase()} now`);
      if (person.id === own) await startSession();
    } catch (error) {
      replace({ ...person });
      refused(error);
    }
  };
  const remove = async (person: Person) => {
    const does = await confirm({
      title: `Remove ${person.email}?`,
      text: "They are signed out and can no longer sign in. Their changes remain in the audit log.",
      does: "Remove this person",
    });
    if (!does) return;
    try {
      await answerOf(api.DELETE("/organisation/user/{id}", { params: { path: { id: person.id } } }));
      people.change((rows) => rows.filter(({ id }) => id !== person.id));
      say(`${person.email} is removed`);
      if (person.id === own) await startSession();
    } catch (error) {
      refused(error);
    }
  };
  return (
    <Page
      title="People"
      lead="Who may sign in to this dashboard, and what each may do here."
      actions={
        <button type="button" class="primary" onClick={() => setAdding(true)}>
          Add a person
        </button>
      }
    >
      <LoadedView of={people} words="Loading the people …">
        {(rows) => (
          <Table
            caption="People"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "E-mail address",
                isHead: true,
                cell: ({ email, id, password_set }) => (
                  <>
                    {email} {id === own && <span class="soft">(you)</span>}
                    {!password_set && <small> Signs in at the identity provider, which also gives the role</small>}
                  </>
                ),
              },
              {
                title: "Role",
                cell: (person) => (
                  <select
                    class="small"
                    aria-label={`Role of ${person.email}`}
                    value={person.role}
                    onChange={(event) => void changeRole(person, event.currentTarget.value as Role)}
                  >
                    {Object.entries(ROLE_WORDS).map(([role, { name }]) => (
                      <option key={role} value={role}>
                        {name}
                      </option>
                    ))}
                  </select>
                ),
              },
              { title: "Last signed in", cell: (person) => <TimeText at={person.last_login_at} /> },
              { title: "Added", cell: (person) => <TimeText at={person.created_at} /> },
              {
                title: "What to do",
                isActions: true,
                cell: (person) => (
                  <div class="row end">
                    <button type="button" onClick={() => setNewPasswordOf(person)}>
                      New password<span class="unseen"> for {person.email}</span>
                    </button>
                    <button type="button" class="danger" onClick={() => void remove(person)}>
                      Remove<span class="unseen"> {person.email}</span>
                    </button>
                  </div>
                ),
              },
            ]}
          />
        )}
      </LoadedView>
      {isAdding && (
        <AddPersonDialog
          onClose={() => setAdding(false)}
          onAdded={(person) => people.change((rows) => [...rows, person])}
        />
      )}
      {newPasswordOf !== null && <PasswordDialog person={newPasswordOf} onClose={() => setNewPasswordOf(null)} />}
    </Page>
  );
}
