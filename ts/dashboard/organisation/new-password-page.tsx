// Where a link for a new password leads. What the link proves is behind `#`, which reaches no server until it is used.
import { useEffect, useState } from "preact/hooks";
import { NewPasswordField } from "../parts/new-password-field.tsx";
import { answerOf, isHeadgateError, plainApi } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { Mark } from "../shell/frame.tsx";
import { leave } from "../shell/session.ts";

const PATH = "/dashboard/new-password";
const USED = "This link has been used or has expired. Ask an administrator of your organisation for another one.";

export const isNewPasswordLink = (): boolean => location.pathname === PATH && location.hash.length > 1;

export function NewPasswordPage() {
  const [password, setPassword] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "New password · Headgate";
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await answerOf(plainApi.POST("/login/password", { body: { token: location.hash.slice(1), password } }));
      history.replaceState(null, "", "/dashboard/");
      leave("password");
    } catch (refusal) {
      setError(isHeadgateError(refusal, "wrong_credentials") ? USED : wordsOfError(refusal));
      setBusy(false);
    }
  };
  return (
    <main class="alone">
      <form class="card login" onSubmit={(event) => void submit(event)}>
        <header>
          <Mark />
          <h1>Choose a password</h1>
        </header>
        <NewPasswordField help="You are signed out everywhere else." value={password} onChange={setPassword} />
        <div role="alert">{error !== null && <p class="note bad">{error}</p>}</div>
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Saving …" : "Save the password"}
        </button>
      </form>
    </main>
  );
}
