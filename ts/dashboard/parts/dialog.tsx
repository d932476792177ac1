// A modal dialog: the browser keeps the focus in it, closes it on Escape and restores the focus.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Disables Escape and the close button, while something must be read first or a result is shown only once. */
  readonly mustStay?: boolean;
  readonly wide?: boolean;
}

/** Open for as long as it is rendered. */
export function Dialog({ title, onClose, children, mustStay = false, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // When it is removed while open, the browser does not restore the focus.
    return () => shown?.close();
  }, []);
  // `cancel` can be prevented only once for each user activation, such as a click (HTML, "Close requests and close
  // watchers"): the next Escape closes the dialog all the same.
  const closed = () => {
    if (dialog.current === null) return; // removed in the meantime
    if (mustStay) dialog.current.showModal();
    else onClose();
  };
  return (
    <dialog
      ref={dialog}
      class={wide ? "box wide" : "box"}
      aria-labelledby={id}
      onCancel={(event) => mustStay && event.preventDefault()}
      onClose={closed}
    >
      <header>
        <h2 id={id}>{title}</h2>
        {!mustStay && (
          <button type="button" class="quiet icon-only" onClick={onClose}>
            <Icon name="close" />
            <span class="unseen">Close</span>
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}
