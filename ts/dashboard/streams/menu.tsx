// A button that opens a menu, by the pattern of the ARIA Authoring Practices. The browser closes it on Escape or a
// click elsewhere, and restores the focus.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "../parts/icons.tsx";

export interface MenuItem {
  readonly title: string;
  readonly icon: IconName;
  readonly run: () => void;
  /** Ends or removes something. */
  readonly isDanger?: boolean;
}

interface MenuButtonProps {
  /** "Actions for Ab1Cd-9XyZ0" */
  readonly label: string;
  /** Called when it opens. */
  readonly items: () => readonly MenuItem[];
}

export function MenuButton({ label, items }: MenuButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        ref={button}
        class="quiet icon-only more-button"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(true)}
      >
        <Icon name="more" />
        <span class="unseen">{label}</span>
      </button>
      {isOpen && <OpenMenu label={label} items={items()} at={button.current} onClose={() => setOpen(false)} />}
    </>
  );
}

interface OpenMenuProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly at: HTMLElement | null;
  readonly onClose: () => void;
}

const KEYS = ["ArrowDown", "ArrowUp", "Home", "End"];

function OpenMenu({ label, items, at, onClose }: OpenMenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = menu.current;
    if (box === null) return;
    box.showPopover();
    if (at !== null) showBeside(box, at.getBoundingClientRect());
    box.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [at]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Tab") return onClose();
    if (!KEYS.includes(event.key)) return;
    event.preventDefault();
    const all = [...(menu.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const now = all.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: -1 }[event.key] ?? 0;
    all.at(next % all.length)?.focus();
  };
  return (
    <div
      ref={menu}
      class="menu"
      popover="auto"
      role="menu"
      tabIndex={-1}
      aria-label={label}
      onKeyDown={onKeyDown}
      onToggle={(event) => event.newState === "closed" && onClose()}
    >
      {items.map(({ title, icon, run, isDanger }) => (
        <button
          key={title}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={isDanger ? "bad" : undefined}
          onClick={() => {
            menu.current?.hidePopover();
            run();
          }}
        >
          <Icon name={icon} />
          {title}
        </button>
      ))}
    </div>
  );
}

/** Below the button, above it where there is no space, and never outside the window. */
function showBeside(menu: HTMLElement, button: DOMRect): void {
  const { width, height } = menu.getBoundingClientRect();
  const below = button.bottom + 4;
  const top = below + height <= innerHeight - 8 ? below : Math.max(8, button.top - height - 4);
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.max(8, Math.min(button.right, innerWidth - 8) - width)}px`;
}
