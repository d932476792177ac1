// A value to be copied elsewhere: an address, a key, a piece of code.
import { useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { say, sayProblem } from "./toasts.tsx";

interface CopyFieldProps {
  /** Its label: "RTMP address". */
  readonly label: string;
  readonly value: string;
  /** Preformatted, several lines. */
  readonly isCode?: boolean;
}

/** Shows the value with a button that copies it. */
export function CopyField({ label, value, isCode = false }: CopyFieldProps) {
  const text = useRef<HTMLElement>(null);
  const copy = async () => {
    if (await copied(value)) return say(`${label} copied`);
    selectAll(text.current);
    sayProblem(`This browser does not let pages copy. ${label} is selected: press Ctrl+C.`);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a value and its button, no fieldset
    <div class={isCode ? "copy code" : "copy"} role="group" aria-label={label}>
      {isCode ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <pre tabIndex={0}>
          <code ref={text}>{value}</code>
        </pre>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: as above
        <code ref={text} tabIndex={0}>
          {value}
        </code>
      )}
      <button type="button" class="quiet icon-only" onClick={() => void copy()}>
        <Icon name="copy" />
        <span class="unseen">Copy {label}</span>
      </button>
    </div>
  );
}

/** Returns whether the value was copied. Browsers allow access to the clipboard only on secure pages. */
export async function copied(value: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch {
    return false;
  }
}

function selectAll(element: HTMLElement | null): void {
  if (element !== null) getSelection()?.selectAllChildren(element);
}
