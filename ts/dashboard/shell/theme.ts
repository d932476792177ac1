// Light, dark, or as the system has it. The choice stays in this browser; page.html sets it before anything is painted.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
/** The same in page.html. */
const KEY = "headgate-theme";

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // no storage in this browser: asked for anew each time
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
    // It holds until the page is closed.
  }
}
