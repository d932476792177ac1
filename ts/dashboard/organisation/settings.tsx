// The organisation: its plan and name, and its settings, each with an explanation. A change takes effect
// immediately; people without permission see the values only.
import { useRef } from "preact/hooks";
import { StatusPill } from "../parts/status-pill.tsx";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page, Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import { IdentityProviderSection } from "./identity-provider.tsx";
import { LogoSection } from "./logo.tsx";
import { ChoiceSetting, FieldsSetting, LinesSetting, NumberSetting, SwitchSetting } from "./setting-fields.tsx";
import { PLAY_WORDS, type Settings, UNREACHABLE_WORDS } from "./setting-words.ts";

const GROUPS = ["Admission", "Updates", "Playing and bitrate"] as const;

export function SettingsPage() {
  const loaded = useLoaded(async (signal) => {
    const [organisation, settings] = await Promise.all([
      answerOf(api.GET("/organisation", { signal })),
      answerOf(api.GET("/organisation/settings", { signal })),
    ]);
    return { organisation, settings };
  });
  const changeInTurn = useChanges();
  return (
    <Page title="Settings" lead="How publishes are authorised, and who may play.">
      <LoadedView of={loaded} words="Loading the settings …">
        {({ organisation, settings }) => {
          const change = (part: Partial<Settings>) =>
            changeInTurn(part, settings, (next) => loaded.set({ organisation, settings: next }));
          return (
            <>
              <Plan organisation={organisation} />
              {GROUPS.map((group) => (
                <Section key={group} title={group}>
                  <div class="settings">
                    <Group name={group} settings={settings} change={change} isLocked={!may("change_settings")} />
                  </div>
                </Section>
              ))}
              <LogoSection />
              {may("manage_users") && <IdentityProviderSection />}
            </>
          );
        }}
      </LoadedView>
    </Page>
  );
}

/** Sends changes one after another, since a later one may contain an earlier one. Those that wait are shown at once, and
 *  those that are refused no longer. */
function useChanges() {
  const waiting = useRef<Partial<Settings>[]>([]);
  const kept = useRef<Settings | null>(null);
  const latest = useRef<Promise<unknown>>(Promise.resolve());
  return (part: Partial<Settings>, shown: Settings, show: (settings: Settings) => void): Promise<string | null> => {
    if (waiting.current.length === 0) kept.current = shown;
    waiting.current.push(part);
    const showAll = () => show(Object.assign({}, kept.current, ...waiting.current) as Settings);
    showAll();
    const done = latest.current.then(async () => {
      let refused: string | null = null;
      try {
        kept.current = await answerOf(api.PUT("/organisation/settings", { body: part }));
        say("Saved");
      } catch (error) {
        refused = wordsOfError(error);
        sayProblem(refused);
      }
      waiting.current.splice(waiting.current.indexOf(part), 1);
      showAll();
      return refused;
    });
    latest.current = done;
    return done;
  };
}

function Plan({ organisation }: { readonly organisation: Records["Organisation"] }) {
  const { name, plan, hash, id, created_at } = organisation;
  return (
    <Section title="Organisation">
      <dl class="facts">
        <dt>Name</dt>
        <dd>{name}</dd>
        <dt>Plan</dt>
        <dd>
          <StatusPill tone={plan === "paid" ? "good" : "attention"}>{plan === "paid" ? "Paid" : "Trial"}</StatusPill>
          {plan === "trial" && (
            <small> When it ends, publishes are refused. The operator of this Headgate changes it.</small>
          )}
        </dd>
        <dt>Stream names begin with</dt>
        <dd class="mono">{hash}-</dd>
        <dt>Id</dt>
        <dd class="mono">{id}</dd>
        <dt>Since</dt>
        <dd>
          <TimeText at={created_at} />
        </dd>
      </dl>
    </Section>
  );
}

interface GroupProps {
  readonly name: (typeof GROUPS)[number];
  readonly settings: Settings;
  readonly isLocked: boolean;
  readonly change: (part: Partial<Settings>) => Promise<string | null>;
}

function Group({ name, settings, change, isLocked }: GroupProps) {
  const common = { settings, change, isLocked };
  switch (name) {
    case "Admission":
      return (
        <>
          <ChoiceSetting {...common} name="publish_on_hook_unreachable" words={UNREACHABLE_WORDS} />
          <SwitchSetting {...common} name="reason_to_broadcaster" />
          <SwitchSetting {...common} name="require_token" />
          <SwitchSetting {...common} name="publish_key" />
          <SwitchSetting {...common} name="strict_arguments" />
        </>
      );
    case "Updates":
      return (
        <>
          <NumberSetting {...common} name="update_reject_after" least={1} most={1_000} />
          <NumberSetting {...common} name="update_max_unreachable" least={0} most={1_000} />
          <FieldsSetting {...common} />
          <SwitchSetting {...common} name="health_events" />
        </>
      );
    case "Playing and bitrate":
      return (
        <>
          <ChoiceSetting {...common} name="play" words={PLAY_WORDS} />
          {settings.play === "addresses" && <LinesSetting {...common} name="play_addresses" />}
          <NumberSetting {...common} name="max_bitrate_kbps" least={0} most={100_000} />
          <NumberSetting {...common} name="hold_s" least={0} most={60} empty="service default" />
          <NumberSetting {...common} name="silence_s" least={5} most={3_600} />
        </>
      );
  }
}
