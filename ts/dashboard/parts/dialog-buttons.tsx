// The buttons of a dialog's form: cancel, or submit, which cannot be done twice.
import type { ComponentChildren } from "preact";

interface DialogButtonsProps {
  readonly onClose: () => void;
  readonly isBusy: boolean;
  /** "Saving …" */
  readonly busy: string;
  /** Label of the submit button. */
  readonly children: ComponentChildren;
}

export function DialogButtons({ onClose, isBusy, busy, children }: DialogButtonsProps) {
  return (
    <footer>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" class="primary" aria-disabled={isBusy}>
        {isBusy ? busy : children}
      </button>
    </footer>
  );
}
