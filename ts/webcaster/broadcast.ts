// One broadcast from `startBroadcast` to its end: connected, monitored, resumed by ICE restart, restarted
// when it was lost. Media is handled in media-input.ts, the public API is webcaster.ts.

import { pause } from "./pause.ts";
import { asWebcasterError, WebcasterError } from "./pure/errors.ts";
import { Heartbeat } from "./pure/heartbeat.ts";
import { type Metrics, metricsOf, type Reading, readingOf, receivedCount, type Stats } from "./pure/metrics.ts";
import { delayBefore, type ReconnectConfig } from "./pure/reconnect.ts";
import type { StateEvent, WebcasterState } from "./pure/state.ts";
import { Upstream, type UpstreamOptions, type UpstreamQuality } from "./upstream.ts";
import { isOver, type WhipSession } from "./whip-session.ts";

const METRICS_EVERY_MS = 1_000;
/** How long resuming the same session is tried before a new one is started, milliseconds. */
const RECOVERY_LIMIT_MS = 12_000;
/** Interval of checks whether the connection is back. */
const RECOVERY_STEP_MS = 250;
/** Least time between two ICE restarts; the service accepts one in 2 s. */
const RESTART_PAUSE_MS = 3_000;
/** Pause after a restart that did not reach the service. */
const RESTART_RETRY_MS = 750;

/** `reconnecting` while a lost broadcast is being restarted, `failed` when that was given up. */
export type ReconnectionState = "idle" | "reconnecting" | "failed";

/** What a broadcast needs from the Webcaster. */
export interface BroadcastHost {
  readonly state: WebcasterState;
  /** The current options for connecting. */
  options(): Omit<UpstreamOptions, "signal">;
  advance(event: StateEvent): void;
  onConnectionState(state: RTCPeerConnectionState): void;
  onReconnectionState(state: ReconnectionState): void;
  onMetrics(metrics: Metrics): void;
  onError(error: WebcasterError): void;
}

export class Broadcast {
  readonly #host: BroadcastHost;
  readonly #reconnect: Required<ReconnectConfig> | null;
  /** Aborted when the broadcast ends, for whatever reason. */
  readonly #over = new AbortController();
  /** Aborted to try again before the pause is over. */
  #awake = new AbortController();
  #upstream: Upstream | null = null;
  /** Lost, while the service is asked why. */
  #leaving: Upstream | null = null;
  /** The latest attempt to connect. */
  #connecting: Promise<void> | null = null;
  #heartbeat = new Heartbeat();
  /** Whether the latest reading contained anything new from the service. */
  #isHeard = false;
  /** The reading with which the next one is compared. */
  #reading: Reading | null = null;
  #timer: ReturnType<typeof setInterval> | undefined;
  #liveSinceMs = 0;
  #reconnects = 0;

  constructor(host: BroadcastHost, reconnect: Required<ReconnectConfig> | null) {
    this.#host = host;
    this.#reconnect = reconnect;
  }

  get upstream(): Upstream | null {
    return this.#upstream;
  }

  /** Connects for the first time; a failure is final. */
  async start(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      if (this.#over.signal.aborted) throw new WebcasterError("stopped", { cause: error });
      this.drop();
      this.#host.advance("gave_up");
      throw error;
    }
    this.#liveSinceMs = performance.now();
    this.#timer = setInterval(() => void this.readStatistics(), METRICS_EVERY_MS);
    this.#host.advance("connected");
  }

  /** Ends it; resolves when the service knows, or cannot be reached. */
  async stop(): Promise<void> {
    const upstream = this.#end();
    await this.#connecting?.catch(() => {});
    // A service that cannot be reached notices the closed connection by itself.
    await upstream?.close().catch(() => {});
  }

  /** Ends it immediately, for a page being left. */
  drop(): void {
    this.#end()?.drop();
  }

  setQuality(quality: UpstreamQuality): Promise<void> {
    return this.#upstream?.setQuality(quality) ?? Promise.resolve();
  }

  /** The network is back: pending retries start immediately. */
  wake(): void {
    this.#awake.abort();
    this.#awake = new AbortController();
    void this.readStatistics();
  }

  /** Reads the statistics: reports metrics, and detects when nothing is received from the service any more. */
  async readStatistics(): Promise<void> {
    const upstream = this.#upstream;
    const reading = upstream && (await this.#read(upstream));
    if (reading === null) return;
    const about = {
      state: this.#host.state,
      liveSec: Math.round((performance.now() - this.#liveSinceMs) / 1_000),
      reconnects: this.#reconnects,
      isHidden: document.hidden,
    };
    const metrics = metricsOf(this.#reading, reading, about);
    this.#reading = reading;
    this.#host.onMetrics(metrics);
    const isSending = (metrics.video?.bitrateBps ?? 0) + (metrics.audio?.bitrateBps ?? 0) > 0;
    if (this.#heartbeat.isSilent(performance.now(), isSending)) this.#interrupted(upstream);
  }

  /** The current statistics, or null when this connection has been replaced. */
  async #read(upstream: Upstream): Promise<Reading | null> {
    const report = await upstream.connection.getStats().catch(() => null);
    if (report === null || upstream !== this.#upstream) return null;
    const reading = readingOf(report.values() as Iterable<Stats>);
    this.#isHeard = this.#heartbeat.add(receivedCount(reading), performance.now());
    return reading;
  }

  #connect(): Promise<void> {
    this.#connecting = this.#open();
    return this.#connecting;
  }

  async #open(): Promise<void> {
    const { signal } = this.#over;
    const upstream = await Upstream.open(
      { ...this.#host.options(), signal },
      {
        onConnectionState: (state) => this.#host.onConnectionState(state),
        onInterrupted: () => this.#interrupted(this.#upstream),
        onEnded: () => void this.#lost(new WebcasterError("ended_by_service")),
      },
    );
    // Applies what the page has changed meanwhile.
    if (!signal.aborted) await upstream.refresh(this.#host.options()).catch(() => {});
    if (signal.aborted) {
      await upstream.close().catch(() => {});
      throw new WebcasterError("stopped");
    }
    this.#upstream = upstream;
    this.#heartbeat = new Heartbeat();
    this.#reading = null;
    void this.#read(upstream).then((reading) => {
      this.#reading ??= reading;
    });
  }

  #interrupted(upstream: Upstream | null): void {
    if (upstream === null || upstream !== this.#upstream || upstream === this.#leaving) return;
    if (this.#host.state !== "live") return;
    this.#host.advance("interrupted");
    void this.#recover(upstream);
  }

  /** Resumes the same session: either the path comes back, or an ICE restart finds another one. */
  async #recover(upstream: Upstream): Promise<void> {
    const untilMs = performance.now() + RECOVERY_LIMIT_MS;
    let restartAtMs = 0;
    const isOurs = () => upstream === this.#upstream && upstream !== this.#leaving && this.#host.state === "recovering";
    while (isOurs()) {
      if ((await this.#read(upstream)) !== null && this.#isHeard && upstream.hasPath) break;
      if (performance.now() > untilMs) return this.#lost(new WebcasterError("connection_lost"));
      if (performance.now() >= restartAtMs) {
        restartAtMs = performance.now() + RESTART_PAUSE_MS;
        try {
          await upstream.restartIce();
        } catch (error) {
          if (!isOurs()) return;
          // The service runs but does not know the session: it has ended there.
          if (isOver(statusOf(error))) return this.#lost(new WebcasterError("ended_by_service"));
          restartAtMs = performance.now() + RESTART_RETRY_MS;
        }
      }
      await pause(RECOVERY_STEP_MS, this.#over.signal);
    }
    if (isOurs()) this.#host.advance("connected");
  }

  /** This session has ended; if somebody ended it on purpose, for good. */
  async #lost(error: WebcasterError): Promise<void> {
    const upstream = this.#upstream;
    if (upstream === null || upstream === this.#leaving) return;
    this.#leaving = upstream;
    const { session } = upstream;
    const ending = (await session?.ending()) ?? null;
    // Stopped meanwhile.
    if (upstream !== this.#upstream) return;
    this.#upstream = null;
    upstream.drop();
    if (ending?.isTransient === false) return this.#giveUp(ending);
    if (this.#reconnect === null) return this.#giveUp(error);
    this.#host.advance("lost");
    this.#host.onReconnectionState("reconnecting");
    await this.#tryAgain(this.#reconnect, session, error);
  }

  async #tryAgain(
    config: Required<ReconnectConfig>,
    session: WhipSession | null,
    first: WebcasterError,
  ): Promise<void> {
    let error = first;
    /** Of those that are counted. */
    let attempt = 1;
    for (let made = 0; ; made += 1) {
      const delaySec = delayBefore(attempt, config, error.retryAfterSec, Math.random());
      if (delaySec === null) {
        return this.#giveUp(new WebcasterError("reconnect_failed", { detail: error.message, cause: error }));
      }
      const awake = this.#awake.signal;
      await pause(delaySec * 1_000, this.#over.signal, awake);
      if (this.#over.signal.aborted) return;
      // Who looks at the page again and again while the network is away does not use up the attempts.
      if (!awake.aborted) attempt += 1;
      // Somebody may have ended it while the network was away.
      const ending = (await session?.ending()) ?? null;
      if (this.#over.signal.aborted) return;
      // An earlier attempt of this page may be what replaced it.
      const isOwn = made > 0 && ending?.problem === "replaced";
      if (ending?.isTransient === false && !isOwn) return this.#giveUp(ending);
      try {
        await this.#connect();
        break;
      } catch (thrown) {
        if (this.#over.signal.aborted) return;
        error = asWebcasterError(thrown, "connection_refused");
        // Retrying does not help when the request was refused.
        if (!error.isTransient) return this.#giveUp(error);
      }
    }
    this.#reconnects += 1;
    this.#host.advance("connected");
    this.#host.onReconnectionState("idle");
  }

  #giveUp(error: WebcasterError): void {
    const wasReconnecting = this.#host.state === "reconnecting";
    this.drop();
    this.#host.advance("gave_up");
    if (wasReconnecting) this.#host.onReconnectionState("failed");
    this.#host.onError(error);
  }

  /** Stops all activity; returns the connection, which the caller must close. */
  #end(): Upstream | null {
    this.#over.abort();
    clearInterval(this.#timer);
    const upstream = this.#upstream;
    this.#upstream = null;
    return upstream;
  }
}

function statusOf(error: unknown): number | null {
  return error instanceof WebcasterError ? error.status : null;
}
