// The signed-in person: one signal by which everything is rendered. The session itself is in a cookie that no script
// can read.
import { type ReadonlySignal, signal } from "@preact/signals";
import { forgetQuestion } from "../parts/confirm.tsx";
import { clearToasts, sayProblem } from "../parts/toasts.tsx";
import { onSessionEnd, plainApi, setPageToken } from "./client.ts";
import { type Me, mayDo, type Permission } from "./permissions.ts";

export type Session =
  /** The response has not arrived yet. */
  | { readonly state: "asking" }
  | { readonly state: "unreachable" }
  /** `ended`: there was a session a moment ago. `password`: it ended because the person changed their own password.
   *  `former`: whose session has ended by itself. Their page is kept, out of sight, with what is typed in it. */
  | { readonly state: "out"; readonly why: "signed-out" | "ended" | "password" | null; readonly former: Me | null }
  | { readonly state: "in"; readonly me: Me };

const current = signal<Session>({ state: "asking" });
/** Read `value`. */
export const session: ReadonlySignal<Session> = current;

/** Whose pages are rendered. */
export function present(): Me | null {
  const known = current.value;
  return known.state === "in" ? known.me : known.state === "out" ? known.former : null;
}

/** Whether that person has a permission. */
export function may(permission: Permission): boolean {
  const known = present();
  return known !== null && mayDo(known, permission);
}

/** That person. Pages are rendered only when there is one, and may call this. */
export function me(): Me {
  const known = present();
  if (known === null) throw new Error("nobody is signed in");
  return known;
}

function become(next: Session): void {
  const former = present()?.id;
  current.value = next;
  // A question is for the person who was signed in.
  if (present()?.id !== former) forgetQuestion();
}

/** Determines who is signed in. */
export async function startSession(): Promise<void> {
  become({ state: "asking" });
  become(await whoIsThere());
}

/** The result of a sign-in; `retryAfterS` when it was refused for a while. */
export type SignIn = "in" | "wrong" | "no-cookie" | "not-enabled" | "unreachable" | { readonly retryAfterS: number };

export async function signIn(email: string, password: string): Promise<SignIn> {
  const answer = await plainApi.POST("/login", { body: { email, password } }).catch(() => null);
  if (answer === null) return "unreachable";
  const { response, error } = answer;
  // A proxy may answer with a date.
  if (response.status === 429) return { retryAfterS: Number(response.headers.get("retry-after")) || 60 };
  if (error !== undefined) {
    type Answer = { error?: { code?: number; userinfo?: { required_state?: string } } };
    const { code, userinfo } = (error as Answer).error ?? {};
    if (userinfo?.required_state === "enabled") return "not-enabled";
    return code === 4002 || response.status === 400 ? "wrong" : "unreachable";
  }
  // The password is correct. Only the next request shows whether the browser kept the cookie.
  const known = await whoIsThere();
  if (known.state === "out") return "no-cookie";
  if (known.state === "unreachable") return "unreachable";
  become(known);
  return "in";
}

/** A failure is reported: whoever leaves a shared device must know that the session continues. */
export async function signOut(): Promise<void> {
  const answer = await plainApi.POST("/logout").catch(() => null);
  if (answer?.response.ok || answer?.response.status === 401) {
    leave("signed-out");
    // A device that several people use: otherwise the next one is signed in again by one press.
    const { identity_provider = null } = answer.data ?? {};
    if (identity_provider !== null) location.assign(identity_provider);
    return;
  }
  const why = answer === null ? "Headgate did not answer" : "Headgate could not end the session";
  sayProblem(`You are still signed in: ${why}. Try again before you leave this device.`);
}

/** The session has ended on the server. */
export function leave(why: "signed-out" | "ended" | "password"): void {
  setPageToken(null);
  clearToasts();
  become({ state: "out", why, former: why === "ended" ? present() : null });
}

async function whoIsThere(): Promise<Session> {
  const answer = await plainApi.GET("/me").catch(() => null);
  if (answer?.data !== undefined) {
    setPageToken(answer.data.csrf_token);
    return { state: "in", me: answer.data };
  }
  // The service says so by an error of its own. Anything else comes from a proxy, or will pass: it ends no session.
  const isOut = answer?.response.status === 403 && typeof (answer.error as { error?: unknown })?.error === "object";
  return isOut ? { state: "out", why: null, former: null } : { state: "unreachable" };
}

onSessionEnd(async (signal) => {
  const former = present();
  if (former === null) return false;
  if (current.value.state === "in") {
    const known = await whoIsThere();
    if (known.state === "unreachable") return false;
    if (known.state === "in") {
      become(known); // a role that was changed meanwhile, or another tab has signed in again
      return isSame(known.me, former) && known.me.csrf_token !== former.csrf_token;
    }
    leave("ended");
  }
  return await signedInAgain(former, signal);
});

const isSame = (one: Me, other: Me) => one.id === other.id && one.organisation.id === other.organisation.id;

/** Resolves when somebody signs in: to whether it is the same person. False if the call is no longer wanted. */
function signedInAgain(former: Me, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const stop = current.subscribe((known) => {
      if (known.state === "in") resolve(isSame(known.me, former));
      else if (known.state !== "out" || known.former === null) resolve(false);
      else return;
      queueMicrotask(() => stop()); // it may be known at once
    });
    signal.addEventListener("abort", () => {
      stop();
      resolve(false);
    });
  });
}
