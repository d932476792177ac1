// The colour scheme: light, dark, or the system's. The choice is kept in this browser; page.html applies it before the
// first paint.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
/** The same in page.html. */
const KEY = "headgate-theme";

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // no storage in this browser: the choice is not kept
  }
}

const current = signal<Theme>(stored());
export const theme: { readonly value: Theme } = current;

export function setTheme(next: Theme): void {
  current.value = next;
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  try {
    if (next === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // Without storage it lasts until the page is closed.
  }
}
