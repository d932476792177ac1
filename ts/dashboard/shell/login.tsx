// The login. It is shown at any path, followed by that page: the path is never passed on in a parameter.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { Mark } from "./frame.tsx";
import { type SignIn, signIn } from "./session.ts";

type Refused = Exclude<SignIn, "in">;

const WHY = {
  "signed-out": "You are signed out.",
  ended: "Your session has ended. Sign in again to continue where you were.",
  password: "Your password has been changed. Sign in with the new one.",
} as const;

/** Refusals of ts/organisation/identity/sign-in.ts, in words. */
const REFUSED: Readonly<Record<string, string>> = {
  not_configured:
    "Your organisation has no identity provider here. Ask one of its administrators for the sign-in link.",
  not_enabled: "Your organisation is not enabled: its trial may be over. Ask the operator of this Headgate.",
  expired: "This sign-in was begun in another window or too long ago. Begin again.",
  denied: "The identity provider has refused the sign-in, or you have cancelled it.",
  provider_failed:
    "Your identity provider does not answer as it should. Administrators of your organisation find the cause in the audit log.",
  no_role:
    "You are signed in at your identity provider, but have no role here. Ask an administrator of your organisation.",
  no_email: "Your identity provider has not given your e-mail address. Ask an administrator of your organisation.",
  email_taken:
    "Somebody here has your e-mail address already, and your identity provider has not confirmed that it is yours. Ask an administrator of your organisation.",
  too_many_people: "Your organisation has as many people here as it may.",
  too_many_attempts: "Too many attempts. Try again in 15 minutes.",
};

/** Kept in this browser, so that only the first sign-in needs the organisation's link. */
const ORGANISATION_KEY = "headgate-organisation";

/** The organisation whose identity provider is offered, and why the last attempt was refused. */
function signInAddress(): { readonly organisation: string | null; readonly refusal: string | null } {
  const named = /^\/dashboard\/sign-in\/([A-Za-z0-9]{1,32})$/.exec(location.pathname)?.[1] ?? null;
  const refusal = /^#refused=(\w+)$/.exec(location.hash)?.[1] ?? null;
  try {
    if (refusal === "not_configured") localStorage.removeItem(ORGANISATION_KEY);
    else if (named !== null) localStorage.setItem(ORGANISATION_KEY, named);
    const kept = localStorage.getItem(ORGANISATION_KEY) ?? "";
    return { organisation: /^[A-Za-z0-9]{1,32}$/.test(kept) ? kept : null, refusal };
  } catch {
    return { organisation: named, refusal }; // no storage in this browser
  }
}

/** In front of a page that is kept for the person who signs in again. A dialog, since one of the page's may be open. */
export function LoginOver({ why }: { readonly why: keyof typeof WHY | null }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const [title, shown] = [document.title, dialog.current];
    shown?.showModal();
    return () => {
      document.title = title;
      shown?.close(); // gives the focus back
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="login-over"
      aria-label="Sign in"
      onCancel={(event) => event.preventDefault()}
      onClose={() => dialog.current?.showModal()}
    >
      <Login why={why} />
    </dialog>
  );
}

export function Login({ why }: { readonly why: keyof typeof WHY | null }) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [answer, setAnswer] = useState<Refused | null>(null);
  const [isBusy, setBusy] = useState(false);
  const secret = useRef<HTMLInputElement>(null);
  const [{ organisation, refusal }] = useState(signInAddress);
  useEffect(() => {
    document.title = "Sign in · Headgate";
    // Another attempt must not show the refusal of the former one.
    if (refusal !== null) history.replaceState(null, "", location.pathname);
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
        {refusal !== null && (
          <p class="note bad" role="alert">
            {REFUSED[refusal] ?? "Your identity provider could not sign you in."}
          </p>
        )}
        <div role="status">{why !== null && answer === null && <p class="note">{WHY[why]}</p>}</div>
        {organisation !== null && (
          <a class="button primary" href={`/login/identity-provider/${organisation}`}>
            Sign in with your identity provider
          </a>
        )}
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
        <button type="submit" class={organisation === null ? "primary" : ""} aria-disabled={isBusy}>
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
