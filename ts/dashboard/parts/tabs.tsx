// Tabs by the pattern of the ARIA Authoring Practices: one tab stop, arrow keys move between them.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly { readonly title: string; readonly content: ComponentChildren }[];
  /** The tab that is open at first, for a choice that outlives these tabs; `onOpen` is called for every other one. */
  readonly first?: number;
  /** The open tab, where that is decided elsewhere, such as by the page's address. */
  readonly open?: number;
  readonly onOpen?: (index: number) => void;
}

export function Tabs({ label, tabs, first = 0, open: given, onOpen = () => {} }: TabsProps) {
  const [own, setOpen] = useState(first);
  const open = given ?? own;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const show = (index: number) => {
    setOpen(index);
    onOpen(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (open + step + tabs.length) % tabs.length;
    show(next);
    list.current?.querySelectorAll("button")[next]?.focus();
  };
  return (
    <div>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(({ title }, index) => (
          <button
            key={title}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === open}
            aria-controls={`${id}-panel`}
            tabIndex={index === open ? 0 : -1}
            onClick={() => show(index)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${open}`}>
        {tabs[open]?.content}
      </div>
    </div>
  );
}
