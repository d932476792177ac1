// The login. It is shown at any path, followed by that page: the path is never passed on in a parameter.
import { useEffect, useRef, useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { Mark } from "./frame.tsx";
import { type SignIn, signIn } from "./session.ts";

type Refused = Exclude<SignIn, "in">;

const WHY = {
  "signed-out": "You are signed out.",
  ended: "Your session has ended. Sign in again to continue where you were.",
  password: "Your password has been changed. Sign in with the new one.",
} as const;

export function Login({ why }: { readonly why: keyof typeof WHY | null }) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [answer, setAnswer] = useState<Refused | null>(null);
  const [isBusy, setBusy] = useState(false);
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Headgate";
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setAnswer(null);
    const outcome = await signIn(email.trim(), password);
    setBusy(false);
    if (outcome === "in") return;
    setAnswer(outcome);
    if (outcome === "wrong") secret.current?.select();
  };
  return (
    <main class="alone">
      <form class="card login" onSubmit={(event) => void submit(event)}>
        <header>
          <Mark />
          <h1>Sign in to Headgate</h1>
        </header>
        {!isSecureContext && <InsecureHost />}
        <div role="status">{why !== null && answer === null && <p class="note">{WHY[why]}</p>}</div>
        <FormField label="E-mail address" help="The first person of a new Headgate is called admin.">
          {(field) => (
            <input
              {...field}
              type="text"
              inputMode="email"
              autocomplete="username"
              autocapitalize="off"
              spellcheck={false}
              required
              value={email}
              onInput={(event) => setEmail(event.currentTarget.value)}
            />
          )}
        </FormField>
        <FormField label="Password">
          {(field) => (
            <input
              {...field}
              ref={secret}
              type="password"
              autocomplete="current-password"
              required
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          )}
        </FormField>
        <div role="alert">{answer !== null && <p class="note bad">{wordsOf(answer)}</p>}</div>
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? "Signing in …" : "Sign in"}
        </button>
        <p class="login-guide">
          New here?{" "}
          <a href="/docs/guide" target="_blank" rel="noopener">
            Read the guide
          </a>
        </p>
      </form>
    </main>
  );
}

/** Over plain HTTP from another machine a browser keeps no session, because the cookie requires HTTPS. */
function InsecureHost() {
  return (
    <div class="note attention">
      <p>
        <strong>This address is not secure, so signing in cannot work here.</strong> The browser keeps the session only
        over HTTPS, or on the machine that Headgate runs on.
      </p>
      <ul>
        <li>
          On the server itself, or through{" "}
          <code>
            ssh -L 8080:localhost:{location.port || "80"} {location.hostname}
          </code>
          , open <code>http://localhost:8080/</code>.
        </li>
        <li>
          For everyone: give Headgate a certificate (<code>http.tls_cert</code> and <code>http.tls_key</code>), or put
          an HTTPS proxy in front of it and set <code>http.public_url</code>.
        </li>
      </ul>
    </div>
  );
}

function wordsOf(answer: Refused): string {
  if (typeof answer === "object") {
    const minutes = Math.max(1, Math.ceil(answer.retryAfterS / 60));
    return `Too many wrong passwords. Try again in ${minutes === 1 ? "a minute" : `${minutes} minutes`}.`;
  }
  switch (answer) {
    case "wrong":
      return "E-mail address or password is wrong. An administrator of your organisation can set a new password.";
    case "no-cookie":
      return "The password is right, but the browser did not keep the session. It does over HTTPS, or on http://localhost; some browsers want HTTPS even there. A browser that blocks all cookies cannot sign in.";
    case "not-enabled":
      return "Your organisation is not enabled: its trial may be over. Ask the operator of this Headgate.";
    case "unreachable":
      return "Headgate does not answer. It may be restarting, or this device may be offline.";
  }
}
