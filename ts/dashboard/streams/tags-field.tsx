// Tags as they are typed: Enter or a comma completes one, each has a button that removes it.
import { useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { Icon } from "../parts/icons.tsx";

/** As in ts/organisation/streams.ts. */
const TAGS_LIMIT = 50;
const TAG_LENGTH_LIMIT = 100;

interface TagsFieldProps {
  readonly tags: readonly string[];
  readonly onChange: (tags: readonly string[]) => void;
  readonly help?: string;
}

export function TagsField({ tags, onChange, help }: TagsFieldProps) {
  const [typed, setTyped] = useState("");
  const add = (text: string) => {
    const given = text.split(",").map((tag) => tag.trim());
    const added = given.filter((tag) => tag !== "" && !tags.includes(tag));
    setTyped("");
    if (added.length > 0) onChange([...new Set([...tags, ...added])].slice(0, TAGS_LIMIT));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return; // the key is the input method's: it completes a word, not the tag
    if (event.key === "Enter" && typed.trim() !== "") {
      event.preventDefault();
      add(typed);
    } else if (event.key === "Backspace" && typed === "" && tags.length > 0) onChange(tags.slice(0, -1));
  };
  const error = tags.length >= TAGS_LIMIT ? `A stream has at most ${TAGS_LIMIT} tags.` : null;
  return (
    <FormField label="Tags" help={help} error={error}>
      {(field) => (
        <div class="tags-field">
          {tags.map((tag) => (
            <span key={tag} class="tag">
              {tag}
              <button type="button" class="quiet" onClick={() => onChange(tags.filter((other) => other !== tag))}>
                <Icon name="close" />
                <span class="unseen">Remove the tag {tag}</span>
              </button>
            </span>
          ))}
          <input
            {...field}
            type="text"
            maxLength={TAG_LENGTH_LIMIT}
            autocomplete="off"
            autocapitalize="off"
            enterkeyhint="done"
            placeholder={tags.length === 0 ? "studio-1, main" : ""}
            value={typed}
            onInput={({ currentTarget: { value } }) => (value.endsWith(",") ? add(value) : setTyped(value))}
            onKeyDown={onKeyDown}
            onBlur={() => add(typed)}
          />
        </div>
      )}
    </FormField>
  );
}
