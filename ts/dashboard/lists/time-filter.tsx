// The filter by time of every list: from, to, and the spans that are chosen most. Times are in the browser's time zone.
import { useEffect, useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { timeNow } from "../shell/clock.ts";
import { fieldOf, ofField, quickRanges, type TimeRange } from "./time-range.ts";

/** Pause after a keystroke before the list is loaded, ms. */
const TYPING_MS = 700;

interface TimeFilterProps {
  readonly range: TimeRange;
  readonly onChange: (range: TimeRange) => void;
}

/** For a `search` of the class `filters`. */
export function TimeFilter({ range, onChange }: TimeFilterProps) {
  const { from, to } = range;
  const error = from !== null && to !== null && to <= from ? "Must be later than “From”." : null;
  return (
    <>
      <TimeField label="From" value={from} onChange={(value) => onChange({ from: value, to })} />
      <TimeField label="To" value={to} error={error} onChange={(value) => onChange({ from, to: value })} />
      {/* biome-ignore lint/a11y/useSemanticElements: buttons of one choice, no fieldset */}
      <div class="quick-times" role="group" aria-label="Time">
        {quickRanges(timeNow()).map(([title, quick]) => (
          <button
            key={title}
            type="button"
            class="quiet"
            aria-pressed={quick.from === from && quick.to === to}
            onClick={() => onChange(quick)}
          >
            {title}
          </button>
        ))}
      </div>
    </>
  );
}

interface TimeFieldProps {
  readonly label: string;
  readonly value: number | null;
  readonly error?: string | null;
  readonly onChange: (value: number | null) => void;
}

/** Takes effect on Enter, when it loses focus, and soon after the last keystroke. */
function TimeField({ label, value, error = null, onChange }: TimeFieldProps) {
  /** What is entered and not in effect yet. */
  const [given, setGiven] = useState<string | null>(null);
  const apply = () => {
    if (given === null) return;
    setGiven(null);
    if (given !== fieldOf(value)) onChange(ofField(given));
  };
  useEffect(() => {
    if (given === null) return;
    const timer = setTimeout(apply, TYPING_MS);
    return () => clearTimeout(timer);
  }, [given]);
  return (
    <FormField label={label} error={error}>
      {(field) => (
        <input
          {...field}
          type="datetime-local"
          value={given ?? fieldOf(value)}
          // A date of which a part is missing is no date yet.
          onInput={({ currentTarget: { validity, value: entered } }) => validity.badInput || setGiven(entered)}
          onKeyDown={(event) => event.key === "Enter" && apply()}
          onBlur={apply}
        />
      )}
    </FormField>
  );
}
