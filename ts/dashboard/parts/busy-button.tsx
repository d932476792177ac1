// A button that says what it is doing until that is done, and cannot be pressed twice meanwhile.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface BusyButtonProps {
  /** Rejections are the caller's to show. */
  readonly onPress: () => Promise<unknown>;
  /** "Saving …" */
  readonly busy: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly disabled?: boolean;
}

export function BusyButton({ onPress, busy, children, class: look = "", disabled = false }: BusyButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    if (isBusy) return;
    setBusy(true);
    try {
      await onPress();
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class={look} disabled={disabled} aria-disabled={isBusy} onClick={() => void press()}>
      {isBusy ? busy : children}
    </button>
  );
}
