// A field for each kind of setting: editable with permission, else read-only.
import { useState } from "preact/hooks";
import { FormField, SwitchField } from "../parts/form-field.tsx";
import { SETTING_WORDS, type SettingName, type Settings } from "./setting-words.ts";

interface SettingProps<Name extends SettingName> {
  readonly name: Name;
  readonly settings: Settings;
  /** The person may not change it. */
  readonly isLocked: boolean;
  /** Resolves to the text for the person when it is refused, else null. */
  readonly change: (part: Partial<Settings>) => Promise<string | null>;
}

type NamesOf<Kind> = { [Name in SettingName]: Settings[Name] extends Kind ? Name : never }[SettingName];

/** Its value, for those who may only read it. */
function ReadSetting({ name, value }: { readonly name: SettingName; readonly value: string }) {
  const { label, help } = SETTING_WORDS[name];
  return (
    <div class="field">
      <p class="setting-name">{label}</p>
      <p class="mono">{value}</p>
      <p class="help">{help}</p>
    </div>
  );
}

export function SwitchSetting({ name, settings, change, isLocked }: SettingProps<NamesOf<boolean>>) {
  if (isLocked) return <ReadSetting name={name} value={settings[name] ? "yes" : "no"} />;
  return (
    <SwitchField
      {...SETTING_WORDS[name]}
      checked={settings[name]}
      onChange={(checked) => void change({ [name]: checked })}
    />
  );
}

interface ChoiceSettingProps<Name extends SettingName> extends SettingProps<Name> {
  readonly words: Readonly<Record<string, string>>;
}

export function ChoiceSetting({
  name,
  settings,
  change,
  isLocked,
  words,
}: ChoiceSettingProps<"play" | "publish_on_hook_unreachable">) {
  if (isLocked) return <ReadSetting name={name} value={words[settings[name]] ?? settings[name]} />;
  return (
    <FormField {...SETTING_WORDS[name]}>
      {(field) => (
        <select
          {...field}
          class="medium"
          value={settings[name]}
          onChange={(event) => void change({ [name]: event.currentTarget.value })}
        >
          {Object.entries(words).map(([value, said]) => (
            <option key={value} value={value}>
              {said}
            </option>
          ))}
        </select>
      )}
    </FormField>
  );
}

interface NumberSettingProps extends SettingProps<NamesOf<number | null>> {
  readonly least: number;
  readonly most: number;
  /** What an empty field means, for a setting that may be null; the others must have a number. */
  readonly empty?: string;
}

/** Takes effect on Enter, or when the field loses focus. */
export function NumberSetting({ name, settings, change, isLocked, least, most, empty }: NumberSettingProps) {
  const [given, setGiven] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const kept = settings[name];
  if (isLocked) return <ReadSetting name={name} value={String(kept ?? empty)} />;
  const done = async ({ validity }: HTMLInputElement) => {
    if (given === null) return;
    const next = given.trim() === "" ? null : Number(given);
    // The browser also reports a text that is not a number as empty.
    const mayBeEmpty = empty !== undefined && !validity.badInput;
    const isAllowed = next === null ? mayBeEmpty : Number.isInteger(next) && next >= least && next <= most;
    if (!isAllowed) {
      const orEmpty = empty === undefined ? "" : ", or empty";
      return setError(`A whole number from ${least} to ${most.toLocaleString()}${orEmpty}.`);
    }
    // `change` shows the value at once. Afterwards this would discard what is typed while it is saved.
    setGiven(null);
    const refused = next === kept ? null : await change({ [name]: next });
    setError(refused);
    if (refused !== null) setGiven((typed) => typed ?? given);
  };
  return (
    <FormField {...SETTING_WORDS[name]} error={error}>
      {(field) => (
        <input
          {...field}
          class="short"
          type="number"
          min={least}
          max={most}
          placeholder={empty}
          value={given ?? kept ?? ""}
          onInput={(event) => setGiven(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && void done(event.currentTarget)}
          onBlur={(event) => void done(event.currentTarget)}
        />
      )}
    </FormField>
  );
}

/** A list of texts, one per line. */
export function LinesSetting({ name, settings, change, isLocked }: SettingProps<"play_addresses">) {
  const [given, setGiven] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const kept = settings[name].join("\n");
  if (isLocked) return <ReadSetting name={name} value={kept || "none"} />;
  const save = async () => {
    const lines = (given ?? "").split("\n").map((line) => line.trim());
    const refused = await change({ [name]: lines.filter(Boolean) });
    setError(refused);
    if (refused === null) setGiven((typed) => (typed === given ? null : typed));
  };
  return (
    <>
      <FormField {...SETTING_WORDS[name]} error={error}>
        {(field) => (
          <textarea
            {...field}
            class="mono medium"
            rows={4}
            spellcheck={false}
            value={given ?? kept}
            onInput={(event) => setGiven(event.currentTarget.value)}
          />
        )}
      </FormField>
      {given !== null && given !== kept && (
        <div class="actions">
          <button type="button" class="primary" onClick={() => void save()}>
            Save the addresses
          </button>
          <button
            type="button"
            onClick={() => {
              setGiven(null);
              setError(null);
            }}
          >
            Cancel
          </button>
        </div>
      )}
    </>
  );
}

const FIELDS = ["bitrate", "bytes_in", "bytes_out", "dropped_frames", "fps", "loss", "rtt"] as const satisfies Readonly<
  Settings["update_fields"]
>;

export function FieldsSetting({ settings, change, isLocked }: Omit<SettingProps<"update_fields">, "name">) {
  const chosen = settings.update_fields;
  if (isLocked) return <ReadSetting name="update_fields" value={chosen.join(", ") || "none"} />;
  const { label, help } = SETTING_WORDS.update_fields;
  const toggle = (name: (typeof FIELDS)[number], isOn: boolean) =>
    void change({ update_fields: FIELDS.filter((field) => (field === name ? isOn : chosen.includes(field))) });
  return (
    <fieldset>
      <legend>{label}</legend>
      <div class="row">
        {FIELDS.map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              onChange={(event) => toggle(name, event.currentTarget.checked)}
            />
            <span class="mono">{name}</span>
          </label>
        ))}
      </div>
      <p class="help">{help}</p>
    </fieldset>
  );
}
