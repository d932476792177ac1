// The end of a dialog's form: leave it, or send it, which cannot be done twice.
import type { ComponentChildren } from "preact";

interface DialogButtonsProps {
  readonly onClose: () => void;
  readonly isBusy: boolean;
  /** "Saving …" */
  readonly busy: string;
  /** What the form does. */
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
