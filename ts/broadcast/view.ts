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

/** Values in the lists that are not ids of devices. */
const BROWSERS_CHOICE = "";
const NONE = "none";
/** How often a screen reader may be given a new level, in animation frames. */
const LEVEL_EVERY = 30;

export class View {
  readonly #page: Document;
  readonly #primary: HTMLButtonElement;
  readonly #video: HTMLVideoElement;
  readonly #meter: HTMLElement;
  readonly #fields: ReturnType<typeof fieldsOf>;
  readonly #sources: readonly HTMLInputElement[];
  readonly #shown: Record<string, unknown> = {};
  #frames = 0;

  constructor(page: Document, actions: Actions) {
    this.#page = page;
    this.#primary = this.#element<HTMLButtonElement>("primary");
    this.#video = this.#element<HTMLVideoElement>("preview");
    this.#meter = this.#element("meter");
    this.#fields = fieldsOf(page);
    this.#sources = [...page.querySelectorAll<HTMLInputElement>("input[name=source]")];
    this.#report(actions);
  }

  show(state: PageState): void {
    const words = wordsOf(state);
    const { stage, figures } = state;
    this.#page.body.dataset.stage = stage;
    // The preview is scrolled into view at the start and the end of a broadcast, however far down the settings are.
    this.#whenNew("frame", stage === "connecting" || stage === "ended", () => {
      this.#page.querySelector(".frame")?.scrollIntoView({ block: "nearest" });
    });
    const isLive = stage === "live" || stage === "reconnecting";
    this.#write("badge-text", words.badge);
    this.#write("clock", isLive ? clockOf(state.liveSeconds) : "");
    this.#page.title = `${isLive ? "● Live" : "Broadcast"} · ${state.organisation ?? "Headgate"}`;
    this.#showOwner(state);
    this.#write("status", words.status);
    this.#element("cover").hidden = words.cover === null;
    if (words.cover !== null) {
      this.#write("cover-title", words.cover.title);
      this.#write("cover-text", words.cover.text);
    }
    this.#video.classList.toggle("mirrored", state.choice.source === "camera");
    this.#write("primary", words.primary.label);
    this.#primary.dataset.does = words.primary.does;
    this.#primary.ariaDisabled = String(words.primary.isBusy);
    this.#element("figures").hidden = !isLive || figures === null;
    for (const [name, text] of Object.entries(figures ?? {})) this.#write(`figure-${name}`, text);
    this.#showDestination(state);
    this.#showChoice(state);
    this.#showToggles(state);
    this.#notice("alerts", state.notice);
    this.#notice("hints", state.hint);
  }

  /** Shows a stream in the preview. */
  preview(stream: MediaStream): void {
    this.#video.srcObject = stream;
  }

  level({ level, isLoud }: Level): void {
    this.#meter.style.setProperty("--level", level.toFixed(3));
    this.#meter.dataset.loud = String(isLoud);
    this.#frames += 1;
    if (this.#frames % LEVEL_EVERY === 1 || level === 0) this.#meter.ariaValueNow = String(Math.round(level * 100));
  }

  /** Focuses a field that has to be corrected. */
  enter(field: "name" | "address"): void {
    if (field === "address") this.#element<HTMLDetailsElement>("address-field").open = true;
    this.#fields[field].focus();
  }

  #element<T extends HTMLElement = HTMLElement>(id: string): T {
    return elementOf<T>(this.#page, id);
  }

  #report(actions: Actions): void {
    const { name, address, camera, microphone, quality } = this.#fields;
    this.#primary.addEventListener("click", (event) => {
      // The second click of a double click was not meant for the button's new function.
      if (event.detail <= 1 && this.#primary.ariaDisabled !== "true") actions.primary();
    });
    name.addEventListener("input", () => actions.type("streamName", name.value));
    address.addEventListener("input", () => actions.type("address", address.value));
    for (const kind of ["audio", "video"] as const) {
      this.#element(`mute-${kind}`).addEventListener("click", () => actions.toggle(kind));
    }
    for (const radio of this.#sources) {
      radio.addEventListener("change", () =>
        actions.choose({ source: radio.value === "screen" ? "screen" : "camera" }),
      );
    }
    camera.addEventListener("change", () => actions.choose({ cameraId: camera.value }));
    microphone.addEventListener("change", () => {
      actions.choose({ microphoneId: microphone.value === NONE ? null : microphone.value });
    });
    quality.addEventListener("change", () => actions.choose({ quality: qualityOf(quality.value) }));
  }

  /** Runs `act` only when `value` has changed: rebuilding a list closes it, and writing a text makes screen readers
   *  read it. */
  #whenNew(key: string, value: unknown, act: () => void): void {
    const text = JSON.stringify(value);
    if (this.#shown[key] === text) return;
    this.#shown[key] = text;
    act();
  }

  #write(id: string, text: string): void {
    this.#whenNew(id, text, () => (this.#element(id).textContent = text));
  }

  #list(select: HTMLSelectElement, options: readonly Device[], chosen: string): void {
    this.#whenNew(`${select.id} options`, options, () => {
      select.replaceChildren(...options.map(({ id, label }) => new Option(label, id)));
    });
    if (select.value !== chosen) select.value = chosen;
  }

  #notice(id: string, given: Notice | null): void {
    this.#whenNew(id, given, () => {
      const parts = given === null ? [] : [noticeBox(this.#page, given)];
      this.#element(id).replaceChildren(...parts);
      if (given !== null) this.#element(id).scrollIntoView({ block: "nearest" });
    });
  }

  #showOwner({ organisation, title, logo }: PageState): void {
    this.#write("brand", organisation ?? "Headgate");
    this.#write("heading", title ?? "Broadcast");
    this.#whenNew("logo", logo, () => {
      const image = this.#element<HTMLImageElement>("logo");
      image.hidden = logo === null;
      if (logo !== null) image.src = logo;
    });
  }

  #showDestination({ link, title, streamName, address, stage, notice: shown }: PageState): void {
    const isByHand = link.kind !== "token";
    this.#element("target").hidden = isByHand;
    this.#element("name-field").hidden = !isByHand;
    this.#element("address-field").hidden = !isByHand;
    const name = streamOf({ link, streamName });
    this.#whenNew("target", [name, title], () => {
      const strong = this.#page.createElement("strong");
      const isolated = this.#page.createElement("bdi");
      isolated.textContent = title ?? name;
      strong.append(isolated);
      this.#element("target").replaceChildren("Your link leads to ", strong, title === null ? "." : ` (${name}).`);
    });
    for (const [field, text] of [
      ["name", streamName],
      ["address", address],
    ] as const) {
      if (this.#fields[field].value !== text) this.#fields[field].value = text;
      this.#fields[field].readOnly = isBroadcasting({ stage });
      this.#fields[field].ariaInvalid = String(shown?.field === field);
    }
  }

  #showChoice({ choice, devices, canShareScreen, stage, has, sendsAudio, sendsVideo }: PageState): void {
    this.#element("sources").hidden = !canShareScreen;
    // Without video neither is checked, so that either can be chosen.
    const isChecked = has.video || !isCapturing({ stage });
    for (const radio of this.#sources) radio.checked = isChecked && radio.value === choice.source;
    this.#element("camera-field").hidden = choice.source === "screen";
    this.#list(this.#fields.camera, named(devices.cameras, "Camera"), choice.cameraId);
    const none = { id: NONE, label: "No microphone" };
    const microphones = named(devices.microphones, "Microphone");
    // While live, Mute is used for silence.
    const isLive = isBroadcasting({ stage });
    this.#list(
      this.#fields.microphone,
      isLive && sendsAudio ? microphones : [...microphones, none],
      choice.microphoneId ?? NONE,
    );
    this.#list(this.#fields.quality, QUALITIES, choice.quality.id);
    const isWaiting = stage === "opening" || stage === "connecting";
    for (const field of [this.#fields.camera, ...this.#sources]) field.disabled = isWaiting || (isLive && !sendsVideo);
    this.#fields.quality.disabled = isWaiting;
    this.#fields.microphone.disabled = isWaiting || (isLive && !sendsAudio);
  }

  #showToggles({ has, muted }: PageState): void {
    for (const [kind, on, off] of [
      ["audio", "Mute", "Unmute"],
      ["video", "Hide video", "Show video"],
    ] as const) {
      const button = this.#element<HTMLButtonElement>(`mute-${kind}`);
      button.disabled = !has[kind];
      button.dataset.off = String(muted[kind]);
      const label = button.querySelector("span");
      if (label !== null) label.textContent = muted[kind] ? off : on;
    }
  }
}

const elementOf = <T extends HTMLElement = HTMLElement>(page: Document, id: string) => page.getElementById(id) as T;

const fieldsOf = (page: Document) => ({
  name: elementOf<HTMLInputElement>(page, "name"),
  address: elementOf<HTMLInputElement>(page, "address"),
  camera: elementOf<HTMLSelectElement>(page, "camera"),
  microphone: elementOf<HTMLSelectElement>(page, "microphone"),
  quality: elementOf<HTMLSelectElement>(page, "quality"),
});

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
