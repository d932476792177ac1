// The live preview: plays automatically and muted while the stream is live and the tab is visible; otherwise explains
// why not.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icons.tsx";
import { api } from "../shell/client.ts";
import { type PreviewEnd, startPreview } from "./player.ts";

/** Pause before an interrupted preview is restarted automatically, ms. */
const AGAIN_MS = 2_000;

type State = "starting" | "playing" | "paused" | PreviewEnd;

const WORDS: Readonly<Record<Exclude<State, "playing">, readonly [title: string, text: string]>> = {
  starting: ["The preview is starting …", "It begins with the next keyframe."],
  paused: ["Paused", "Nothing is loaded while paused. The preview resumes at the live position."],
  ended: ["No preview", "The broadcast has just ended or is just beginning."],
  full: ["Too many previews are open", "This Headgate shows 20 at once. Close another one, or try again in a moment."],
  "not-signed-in": ["Your session has ended", "Sign in again to see the preview."],
  codec: [
    "This browser cannot show it",
    "It has no decoder for this video or audio. The broadcast itself is not affected; Chrome and Safari support most codecs.",
  ],
  network: [
    "The preview was interrupted",
    "The connection to Headgate was lost. The broadcast itself may still be running.",
  ],
};

interface PreviewProps {
  readonly streamId: string;
  /** null: not live. A new publish starts a new preview. */
  readonly clientId: number | null;
  /** Text shown while there is no broadcast. */
  readonly notLive: string;
}

export function Preview({ streamId, clientId, notLive }: PreviewProps) {
  return (
    <figure class="preview" aria-label="Live preview">
      {clientId === null ? (
        <div class="preview-words">
          <Icon name="streams" />
          <strong>Not live</strong>
          <span>{notLive}</span>
        </div>
      ) : (
        <Playing key={clientId} streamId={streamId} />
      )}
    </figure>
  );
}

function Playing({ streamId }: { readonly streamId: string }) {
  const video = useRef<HTMLVideoElement>(null);
  const [state, setState] = useState<State>("starting");
  const [isMuted, setMuted] = useState(true);
  const [attempt, setAttempt] = useState(0);
  const isWanted = state !== "paused";
  const isSeen = useVisibility();

  useEffect(() => {
    const element = video.current;
    if (element === null || !isWanted || !isSeen) return;
    setState("starting");
    let isOver = false;
    let stop = () => {};
    startPreview(`/live/${encodeURIComponent(streamId)}.flv`, element, (why) => !isOver && setState(why)).then(
      (preview) => {
        stop = preview.stop;
        if (isOver) stop();
      },
      () => !isOver && setState("network"),
    );
    return () => {
      isOver = true;
      stop();
    };
  }, [streamId, isWanted, isSeen, attempt]);
  useEffect(() => {
    if (!["network", "ended", "not-signed-in"].includes(state)) return;
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = () => {
      timer = setTimeout(() => setAttempt((before) => before + 1), AGAIN_MS);
    };
    // This answers once somebody is signed in again.
    if (state === "not-signed-in") api.GET("/organisation", { signal: left.signal }).then(again, () => {});
    else again();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [state]);

  const isPlaying = state === "playing";
  const words = isPlaying ? null : WORDS[state];
  return (
    <>
      <video
        ref={video}
        muted={isMuted}
        playsInline
        aria-label="What the broadcaster sends now"
        onPlaying={() => setState("playing")}
        onResize={(event) => {
          const { videoWidth, videoHeight, style } = event.currentTarget as HTMLVideoElement;
          if (videoWidth > 0) style.aspectRatio = `${videoWidth} / ${videoHeight}`;
        }}
      />
      {words !== null && (
        <div class="preview-words" role="status">
          <strong>{words[0]}</strong>
          <span>{words[1]}</span>
          {!["starting", "paused", "not-signed-in"].includes(state) && (
            <button type="button" onClick={() => setAttempt(attempt + 1)}>
              Try again
            </button>
          )}
        </div>
      )}
      <figcaption>
        <button
          type="button"
          class="icon-only"
          onClick={() => {
            video.current?.pause();
            setState(isWanted ? "paused" : "starting");
          }}
        >
          <Icon name={isWanted ? "pause" : "play"} />
          <span class="unseen">{isWanted ? "Pause the preview" : "Play the preview"}</span>
        </button>
        <button type="button" class="icon-only" aria-pressed={!isMuted} onClick={() => setMuted(!isMuted)}>
          <Icon name={isMuted ? "muted" : "sound"} />
          <span class="unseen">{isMuted ? "Unmute the audio" : "Mute the audio"}</span>
        </button>
        <button type="button" class="icon-only" onClick={() => void video.current?.requestFullscreen?.()}>
          <Icon name="full" />
          <span class="unseen">Full screen</span>
        </button>
      </figcaption>
    </>
  );
}

/** Whether the tab is visible: a hidden one loads nothing. */
function useVisibility(): boolean {
  const [isSeen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const update = () => setSeen(!document.hidden);
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  }, []);
  return isSeen;
}
