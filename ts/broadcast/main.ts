// Entry point of the page: everything it needs from the browser is passed in here.
import { readLink, tokenIn } from "./link.ts";
import { BroadcastPage, type Owner } from "./page.ts";
import { createScreenLock } from "./wake-lock.ts";

// The token is removed from the address bar, which a shared screen would show; it survives a reload.
const token = tokenIn(location.hash) ?? (history.state as { readonly token?: string } | null)?.token ?? null;
history.replaceState(token === null ? null : { token }, "", location.pathname);

const link = readLink(token);
const page = new BroadcastPage({
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
// Opening another link in the same tab changes only the fragment.
addEventListener("hashchange", () => location.reload());
if (link.kind === "token") void verify(link.token);

/** Reports an expired link before the camera is on, and shows whose stream it is; if the page is offline, the former
 *  happens later. */
async function verify(token: string): Promise<void> {
  const body = JSON.stringify({ token });
  const headers = { "content-type": "application/json" };
  const response = await fetch("/webcaster/stream", { method: "POST", headers, body }).catch(() => null);
  const answer = (await response?.json().catch(() => null)) as Partial<Answer> | null | undefined;
  if (response?.status === 403) page.refuseLink(answer?.message ?? "");
  else if (response?.ok && answer?.data) page.showOwner(answer.data);
}

interface Answer {
  readonly message: string;
  readonly data: Owner;
}
