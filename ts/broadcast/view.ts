// The page's elements (page.html): displays a state, and reports the broadcaster's actions. It decides nothing, and
// writes only text, never markup.
import type { Level } from "./level.ts";
import type { Notice } from "./notices.ts";
import { QUALITIES, qualityOf } from "./qualities.ts";
import { type Choice, type Device, isBroadcasting, isCapturing, type PageState } from "./state.ts";
import { clockOf, streamOf, wordsOf } from "./words.ts";

/** The broadcaster's actions. */
export interface Actions {
  /** The main button. */
  primary(): void;
  choose(choice: Partial<Choice>): void;
  type(field: "streamName" | "address", text: string): void;
  toggle(kind: "audio" | "video"): void;
}

export interface View {
  show(state: PageState): void;
  /** Shows a stream in the preview. */
  preview(stream: MediaStream): void;
  level(level: Level): void;
  /** Focuses a field that has to be corrected. */
  enter(field: "name" | "address"): void;
}

/** Values in the lists that are not ids of devices. */
const BROWSERS_CHOICE = "";
const NONE = "none";
/** How often a screen reader may be given a new level, in animation frames. */
const LEVEL_EVERY = 30;

export function createView(page: Document, actions: Actions): View {
  const element = <T extends HTMLElement = HTMLElement>(id: string) => page.getElementById(id) as T;
  const primary = element<HTMLButtonElement>("primary");
  const video = element<HTMLVideoElement>("preview");
  const meter = element("meter");
  const fields = {
    name: element<HTMLInputElement>("name"),
    address: element<HTMLInputElement>("address"),
    camera: element<HTMLSelectElement>("camera"),
    microphone: element<HTMLSelectElement>("microphone"),
    quality: element<HTMLSelectElement>("quality"),
  };
  const sources = [...page.querySelectorAll<HTMLInputElement>("input[name=source]")];
  const shown: Record<string, unknown> = {};
  let frames = 0;

  primary.addEventListener("click", (event) => {
    // The second click of a double click was not meant for the button's new function.
    if (event.detail <= 1 && primary.ariaDisabled !== "true") actions.primary();
  });
  fields.name.addEventListener("input", () => actions.type("streamName", fields.name.value));
  fields.address.addEventListener("input", () => actions.type("address", fields.address.value));
  for (const kind of ["audio", "video"] as const) {
    element(`mute-${kind}`).addEventListener("click", () => actions.toggle(kind));
  }
  for (const radio of sources) {
    radio.addEventListener("change", () => actions.choose({ source: radio.value === "screen" ? "screen" : "camera" }));
  }
  fields.camera.addEventListener("change", () => actions.choose({ cameraId: fields.camera.value }));
  fields.microphone.addEventListener("change", () => {
    actions.choose({ microphoneId: fields.microphone.value === NONE ? null : fields.microphone.value });
  });
  fields.quality.addEventListener("change", () => actions.choose({ quality: qualityOf(fields.quality.value) }));

  /** Runs `act` only when `value` has changed: rebuilding a list closes it, and writing a text makes screen readers
   *  read it. */
  function whenNew(key: string, value: unknown, act: () => void): void {
    const text = JSON.stringify(value);
    if (shown[key] === text) return;
    shown[key] = text;
    act();
  }
  const write = (id: string, text: string) => whenNew(id, text, () => (element(id).textContent = text));

  function list(select: HTMLSelectElement, options: readonly Device[], chosen: string): void {
    whenNew(`${select.id} options`, options, () => {
      select.replaceChildren(...options.map(({ id, label }) => new Option(label, id)));
    });
    if (select.value !== chosen) select.value = chosen;
  }

  function notice(id: string, given: Notice | null): void {
    whenNew(id, given, () => {
      const parts = given === null ? [] : [noticeBox(page, given)];
      element(id).replaceChildren(...parts);
      if (given !== null) element(id).scrollIntoView({ block: "nearest" });
    });
  }

  function showOwner({ organisation, title, logo }: PageState): void {
    write("brand", organisation ?? "Headgate");
    write("heading", title ?? "Broadcast");
    whenNew("logo", logo, () => {
      const image = element("logo") as HTMLImageElement;
      image.hidden = logo === null;
      if (logo !== null) image.src = logo;
    });
  }

  function showDestination({ link, title, streamName, address, stage, notice: shown }: PageState): void {
    const isByHand = link.kind !== "token";
    element("target").hidden = isByHand;
    element("name-field").hidden = !isByHand;
    element("address-field").hidden = !isByHand;
    const name = streamOf({ link, streamName });
    whenNew("target", [name, title], () => {
      const strong = page.createElement("strong");
      const isolated = page.createElement("bdi");
      isolated.textContent = title ?? name;
      strong.append(isolated);
      element("target").replaceChildren("Your link leads to ", strong, title === null ? "." : ` (${name}).`);
    });
    for (const [field, text] of [
      ["name", streamName],
      ["address", address],
    ] as const) {
      if (fields[field].value !== text) fields[field].value = text;
      fields[field].readOnly = isBroadcasting({ stage });
      fields[field].ariaInvalid = String(shown?.field === field);
    }
  }

  function showChoice({ choice, devices, canShareScreen, stage, has, sendsAudio, sendsVideo }: PageState): void {
    element("sources").hidden = !canShareScreen;
    // Without video neither is checked, so that either can be chosen.
    const isChecked = has.video || !isCapturing({ stage });
    for (const radio of sources) radio.checked = isChecked && radio.value === choice.source;
    element("camera-field").hidden = choice.source === "screen";
    list(fields.camera, named(devices.cameras, "Camera"), choice.cameraId);
    const none = { id: NONE, label: "No microphone" };
    const microphones = named(devices.microphones, "Microphone");
    // While live, Mute is used for silence.
    const isLive = isBroadcasting({ stage });
    list(fields.microphone, isLive && sendsAudio ? microphones : [...microphones, none], choice.microphoneId ?? NONE);
    list(fields.quality, QUALITIES, choice.quality.id);
    const isWaiting = stage === "opening" || stage === "connecting";
    for (const field of [fields.camera, ...sources]) field.disabled = isWaiting || (isLive && !sendsVideo);
    fields.quality.disabled = isWaiting;
    fields.microphone.disabled = isWaiting || (isLive && !sendsAudio);
  }

  function showToggles({ has, muted }: PageState): void {
    for (const [kind, on, off] of [
      ["audio", "Mute", "Unmute"],
      ["video", "Hide video", "Show video"],
    ] as const) {
      const button = element<HTMLButtonElement>(`mute-${kind}`);
      button.disabled = !has[kind];
      button.dataset.off = String(muted[kind]);
      const label = button.querySelector("span");
      if (label !== null) label.textContent = muted[kind] ? off : on;
    }
  }

  return {
    show(state) {
      const words = wordsOf(state);
      const { stage, figures } = state;
      page.body.dataset.stage = stage;
      // The preview is scrolled into view at the start and the end of a broadcast, however far down the settings are.
      whenNew("frame", stage === "connecting" || stage === "ended", () => {
        page.querySelector(".frame")?.scrollIntoView({ block: "nearest" });
      });
      const isLive = stage === "live" || stage === "reconnecting";
      write("badge-text", words.badge);
      write("clock", isLive ? clockOf(state.liveSeconds) : "");
      page.title = `${isLive ? "● Live" : "Broadcast"} · ${state.organisation ?? "Headgate"}`;
      showOwner(state);
      write("status", words.status);
      element("cover").hidden = words.cover === null;
      if (words.cover !== null) {
        write("cover-title", words.cover.title);
        write("cover-text", words.cover.text);
      }
      video.classList.toggle("mirrored", state.choice.source === "camera");
      write("primary", words.primary.label);
      primary.dataset.does = words.primary.does;
      primary.ariaDisabled = String(words.primary.isBusy);
      element("figures").hidden = !isLive || figures === null;
      for (const [name, text] of Object.entries(figures ?? {})) write(`figure-${name}`, text);
      showDestination(state);
      showChoice(state);
      showToggles(state);
      notice("alerts", state.notice);
      notice("hints", state.hint);
    },
    preview(stream) {
      video.srcObject = stream;
    },
    level({ level, isLoud }) {
      meter.style.setProperty("--level", level.toFixed(3));
      meter.dataset.loud = String(isLoud);
      frames += 1;
      if (frames % LEVEL_EVERY === 1 || level === 0) meter.ariaValueNow = String(Math.round(level * 100));
    },
    enter(field) {
      if (field === "address") element<HTMLDetailsElement>("address-field").open = true;
      fields[field].focus();
    },
  };
}

/** Labels are unknown before the first permission, and in some browsers always. */
function named(devices: readonly Device[], kind: string): readonly Device[] {
  if (devices.length === 0) return [{ id: BROWSERS_CHOICE, label: `Default ${kind.toLowerCase()}` }];
  return devices.map(({ id, label }, index) => ({ id, label: label || `${kind} ${index + 1}` }));
}

function noticeBox(page: Document, { tone, title, quote, remedy }: Notice): HTMLElement {
  const box = page.createElement("div");
  box.className = "notice";
  box.dataset.tone = tone;
  const part = (name: "h3" | "blockquote" | "p", text: string) => {
    const made = page.createElement(name);
    made.textContent = text;
    box.append(made);
  };
  part("h3", title);
  if (quote !== undefined) part("blockquote", quote);
  part("p", remedy);
  return box;
}
