// A button that shows its action in progress, and cannot be pressed again meanwhile.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface BusyButtonProps {
  /** The caller must show failures. */
  readonly onPress: () => Promise<unknown>;
  /** "Saving …" */
  readonly busy: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly disabled?: boolean;
}

export function BusyButton({ onPress, busy, children, class: className = "", disabled = false }: BusyButtonProps) {
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
    <button type="button" class={className} disabled={disabled} aria-disabled={isBusy} onClick={() => void press()}>
      {isBusy ? busy : children}
    </button>
  );
}
