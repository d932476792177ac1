// The buttons of a dialog's form: cancel, or submit, which cannot be done twice.
import type { ComponentChildren } from "preact";

interface DialogButtonsProps {
  readonly onClose: () => void;
  readonly isBusy: boolean;
  /** "Saving …" */
  readonly busy: string;
  /** Disables Cancel while busy, because the result is shown only once. */
  readonly mustStay?: boolean;
  /** Label of the submit button. */
  readonly children: ComponentChildren;
}

export function DialogButtons({ onClose, isBusy, busy, mustStay = false, children }: DialogButtonsProps) {
  const isHeld = isBusy && mustStay;
  return (
    <footer>
      <button type="button" aria-disabled={isHeld} onClick={() => !isHeld && onClose()}>
        Cancel
      </button>
      <button type="submit" class="primary" aria-disabled={isBusy}>
        {isBusy ? busy : children}
      </button>
    </footer>
  );
}
