// Placeholders for missing content: a loading message, an error with a way to retry, an empty list with the reason.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icons.tsx";

/** Shown only after a short delay. */
export function Loading({ words }: { readonly words: string }) {
  return (
    <p class="loading" role="status">
      {words}
    </p>
  );
}

interface ProblemProps {
  readonly title: string;
  readonly children?: ComponentChildren;
  /** The button's action; without it there is no button. */
  readonly again?: (() => void) | undefined;
  readonly does?: string;
}

export function Problem({ title, children, again, does = "Try again" }: ProblemProps) {
  return (
    <div class="state problem" role="alert">
      <Icon name="warning" />
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {again && (
        <button type="button" onClick={again}>
          {does}
        </button>
      )}
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly icon: IconName;
  readonly children?: ComponentChildren;
  /** Buttons. */
  readonly actions?: ComponentChildren;
}

export function Empty({ title, icon, children, actions }: EmptyProps) {
  return (
    <div class="state">
      <Icon name={icon} />
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {actions}
    </div>
  );
}
