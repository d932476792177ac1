// Short notifications in a corner, also for screen readers: `say("Copied")`, `sayProblem("The key …")`.
import { signal } from "@preact/signals";
import { Icon } from "./icons.tsx";

/** How long a notification is shown, ms. A problem stays until it is closed. */
const STAY_MS = 6_000;
/** Beyond this the oldest is removed. */
const TOASTS_LIMIT = 4;

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isProblem: boolean;
  /** An action offered with it. */
  readonly act: { readonly title: string; readonly run: () => void } | null;
}

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

export function say(text: string, act: Toast["act"] = null): void {
  const id = add({ text, isProblem: false, act });
  setTimeout(() => close(id), STAY_MS);
}

export function sayProblem(text: string): void {
  add({ text, isProblem: true, act: null });
}

/** Removes all notifications: they are for the person who was signed in. */
export function clearToasts(): void {
  toasts.value = [];
}

function add(toast: Omit<Toast, "id">): number {
  lastId += 1;
  toasts.value = [...toasts.value, { ...toast, id: lastId }].slice(-TOASTS_LIMIT);
  return lastId;
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Rendered once, beside all pages. */
export function Toasts() {
  const shown = (isProblem: boolean) => toasts.value.filter((toast) => toast.isProblem === isProblem);
  return (
    <div class="toasts">
      <div role="alert">{shown(true).map(ToastBox)}</div>
      <div role="status">{shown(false).map(ToastBox)}</div>
    </div>
  );
}

function ToastBox({ id, text, isProblem, act }: Toast) {
  return (
    <div key={id} class={isProblem ? "toast bad" : "toast"}>
      <Icon name={isProblem ? "warning" : "check"} />
      <p>{text}</p>
      {act !== null && (
        <button
          type="button"
          onClick={() => {
            close(id);
            act.run();
          }}
        >
          {act.title}
        </button>
      )}
      <button type="button" class="quiet icon-only" onClick={() => close(id)}>
        <Icon name="close" />
        <span class="unseen">Close this message</span>
      </button>
    </div>
  );
}
