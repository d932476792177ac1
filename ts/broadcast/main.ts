// Where the page starts: everything it takes from the browser is taken here.
import { readLink, tokenIn } from "./link.ts";
import { startPage } from "./page.ts";
import { createScreenLock } from "./wake-lock.ts";

// The token leaves the address bar, which a shared screen shows; a reload still finds it.
const token = tokenIn(location.hash) ?? (history.state as { readonly token?: string } | null)?.token ?? null;
history.replaceState(token === null ? null : { token }, "", location.pathname);

const link = readLink(token);
const page = startPage({
  page: document,
  serverUrl: location.origin,
  ingestUrl: document.querySelector<HTMLMetaElement>("meta[name=headgate-ingest]")?.content ?? "",
  link,
  media: navigator.mediaDevices as MediaDevices | undefined,
  screenLock: createScreenLock(document, navigator.wakeLock),
});

addEventListener("beforeunload", (event) => {
  if (page.isBroadcasting()) event.preventDefault();
});
addEventListener("pagehide", () => page.leave());
// Another link that is opened in the same tab changes nothing but the fragment.
addEventListener("hashchange", () => location.reload());
if (link.kind === "token") void verify(link.token);

/** Tells before the camera is on that a link has expired; who is offline learns of that later. */
async function verify(token: string): Promise<void> {
  const body = JSON.stringify({ token });
  const headers = { "content-type": "application/json" };
  const response = await fetch("/webcaster/verify", { method: "POST", headers, body }).catch(() => null);
  if (response?.status !== 403) return;
  const { message } = (await response.json().catch(() => ({}))) as { readonly message?: string };
  page.refuseLink(message ?? "");
}
