// The signed-in person: one signal by which everything is rendered. The session itself is in a cookie that no script
// can read.
import { signal } from "@preact/signals";
import { clearToasts, sayProblem } from "../parts/toasts.tsx";
import { onSessionEnd, plainApi, setPageToken } from "./client.ts";
import { type Me, mayDo, type Permission } from "./permissions.ts";

export type Session =
  /** The response has not arrived yet. */
  | { readonly state: "asking" }
  | { readonly state: "unreachable" }
  /** `ended`: there was a session a moment ago. `password`: it ended because the person changed their own password. */
  | { readonly state: "out"; readonly why: "signed-out" | "ended" | "password" | null }
  | { readonly state: "in"; readonly me: Me };

const current = signal<Session>({ state: "asking" });
/** Read `value`. */
export const session: { readonly value: Session } = current;

/** Whether the signed-in person has a permission. */
export function may(permission: Permission): boolean {
  const known = current.value;
  return known.state === "in" && mayDo(known.me, permission);
}

/** The signed-in person. Pages are rendered only when there is one, and may call this. */
export function me(): Me {
  const known = current.value;
  if (known.state !== "in") throw new Error("nobody is signed in");
  return known.me;
}

/** Determines who is signed in. */
export async function startSession(): Promise<void> {
  current.value = { state: "asking" };
  current.value = await whoIsThere();
}

/** The result of a sign-in; `retryAfterS` when it was refused for a while. */
export type SignIn = "in" | "wrong" | "no-cookie" | "not-enabled" | "unreachable" | { readonly retryAfterS: number };

export async function signIn(email: string, password: string): Promise<SignIn> {
  const answer = await plainApi.POST("/login", { body: { email, password } }).catch(() => null);
  if (answer === null) return "unreachable";
  const { response, error } = answer;
  if (response.status === 429) return { retryAfterS: Number(response.headers.get("retry-after") ?? 60) };
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
  current.value = known;
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
  current.value = { state: "out", why };
}

async function whoIsThere(): Promise<Session> {
  const answer = await plainApi.GET("/me").catch(() => null);
  if (answer === null || answer.response.status >= 500) return { state: "unreachable" };
  if (answer.data === undefined) return { state: "out", why: null };
  setPageToken(answer.data.csrf_token);
  return { state: "in", me: answer.data };
}

onSessionEnd(async () => {
  if (current.value.state !== "in") return;
  const known = await whoIsThere();
  if (known.state === "out") leave("ended");
  else if (known.state === "in") current.value = known; // a role that was changed meanwhile
});
