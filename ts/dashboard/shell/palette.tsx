// The command palette: Ctrl+K or ⌘K from anywhere, a few letters, Enter. A combobox by the pattern of the ARIA
// Authoring Practices: the focus stays in the field, the arrow keys move the selection.
import { signal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icons.tsx";
import { type Command, findCommands, inGroups, matching } from "./commands.ts";
import { session } from "./session.ts";

const isOpen = signal(false);

export function openPalette(): void {
  isOpen.value = true;
}

/** As labelled on this machine's keyboard. */
export const PALETTE_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K";

/** Rendered once, in the frame. */
export function Palette() {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      isOpen.value = !isOpen.value && session.value.state === "in";
    };
    addEventListener("keydown", onKey);
    return () => {
      removeEventListener("keydown", onKey);
      isOpen.value = false;
    };
  }, []);
  return isOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const [typed, setTyped] = useState("");
  const [known, setKnown] = useState<readonly Command[]>([]);
  /** Id of the command selected by the arrow keys or the pointer; null: the first one. */
  const [pointedAt, setPointedAt] = useState<string | null>(null);
  // Before it is painted: whoever types as soon as it is visible types into the field.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const controller = new AbortController();
    findCommands(typed, controller.signal, setKnown);
    return () => controller.abort();
  }, [typed]);
  // The commands found so far are filtered immediately, so that Enter never runs one that does not match.
  const commands = inGroups(matching(known, typed));
  const chosen = Math.max(
    commands.findIndex((command) => command.id === pointedAt),
    0,
  );
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen, commands.length]);

  const close = () => (isOpen.value = false);
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    close();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return; // the keys are the input method's
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && commands.length > 0) {
      event.preventDefault();
      setPointedAt(commands[(chosen + step + commands.length) % commands.length]?.id ?? null);
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(commands[chosen]);
    }
  };
  const groups = [...new Set(commands.map(({ group }) => group))];
  return (
    <dialog ref={dialog} class="palette" aria-label="Commands" closedby="any" onClose={close}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={commands.length > 0 ? `${id}-${chosen}` : undefined}
          aria-label="Find a page, a stream or an action"
          placeholder="Find a page, a stream or an action"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setPointedAt(null);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div class="palette-list" role="listbox" id={`${id}-list`} aria-label="Commands" ref={list} tabIndex={-1}>
        {groups.map((group) => (
          // biome-ignore lint/a11y/useSemanticElements: a group of options, no fieldset
          <div key={group} role="group" aria-label={group}>
            <p class="palette-group" aria-hidden="true">
              {group}
            </p>
            {commands.map((command, index) =>
              command.group !== group ? null : (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the field's, which keeps the focus
                // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names what is chosen
                <div
                  key={command.id}
                  id={`${id}-${index}`}
                  class="palette-command"
                  role="option"
                  aria-selected={index === chosen}
                  onClick={() => run(command)}
                  onMouseMove={() => setPointedAt(command.id)}
                >
                  <Icon name={command.icon} />
                  <span>{command.title}</span>
                  {command.hint && <small>{command.hint}</small>}
                </div>
              ),
            )}
          </div>
        ))}
      </div>
      <p class="palette-none" role="status">
        {commands.length === 0 ? `Nothing found for “${typed}”.` : ""}
      </p>
    </dialog>
  );
}
