// A value that people take somewhere else: an address, a key, a piece of a program.
import { useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { say, sayProblem } from "./toasts.tsx";

interface CopyFieldProps {
  /** What it is: "RTMP address". */
  readonly label: string;
  readonly value: string;
  /** Several lines, as they are. */
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
        <code ref={text}>{value}</code>
      )}
      <button type="button" class="quiet icon-only" onClick={() => void copy()}>
        <Icon name="copy" />
        <span class="unseen">Copy {label}</span>
      </button>
    </div>
  );
}

/** Whether the clipboard has it now. Browsers give it to secure pages alone. */
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
