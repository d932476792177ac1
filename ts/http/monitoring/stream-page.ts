// One stream as events: its state, its running publish with numbers each second, and how it ended.
import type { Kysely } from "kysely";
import type { LiveSessions, LiveUpstream } from "../../publish/live-sessions.ts";
import type { Measured, Measurements } from "../../publish/monitoring/measurements.ts";
import { endReasonOf } from "../../publish/monitoring/publish-list.ts";
import type { Schema, StreamState } from "../../store/schema.ts";
import { findingRecords } from "../records/finding.ts";
import { numbersRecord, sessionWithDiagnostics, upstreamRecord } from "../records/session.ts";
import { Channel, eventText } from "./channel.ts";
import { playersOf } from "./live-row.ts";
import type { ChangedStream } from "./stream-changes.ts";

/** Polls after which a reader has to reconnect, so that the node answers on which the stream is live. */
const ELSEWHERE_POLLS = 3;
/** Polls after which the reason of an end is reported as unknown: it is written a moment after the end. */
const REASON_POLLS = 5;

export interface StreamPageDeps {
  readonly db: Kysely<Schema>;
  readonly measurements: Pick<Measurements, "ofStream" | "numbersOf">;
  readonly sessions: Pick<LiveSessions, "show" | "players">;
  /** Null where there are no other nodes. */
  readonly others?: object | null;
}

export class StreamPage {
  readonly channel: Channel;
  readonly #deps: StreamPageDeps;
  readonly #stream: { readonly organisationId: string; readonly id: string };
  #at: number;
  #state: StreamState;
  /** The publish that readers know of; null for none. */
  #clientId: number | null;
  /** Its upstreams at the last poll, without their counters. */
  #upstreams = "";
  /** What was wrong with it at the last poll. */
  #findings = "";
  #polls = 0;
  /** Polls at which the stream was live but its publish not on this node. */
  #elsewhere = 0;

  constructor(
    deps: StreamPageDeps,
    stream: { readonly organisationId: string; readonly id: string; readonly state: StreamState },
    at: number,
  ) {
    this.#deps = deps;
    this.#stream = stream;
    this.#state = stream.state;
    this.#at = at;
    this.#clientId = this.#measured()?.publish.clientId ?? null;
    this.channel = new Channel(() => this.#whole());
  }

  /** Sends what is new. `changed`: the organisation's streams that changed since the last call. */
  async send(at: number, changed: readonly ChangedStream[]): Promise<void> {
    this.#at = at;
    const state = changed.find(({ id }) => id === this.#stream.id)?.state ?? this.#state;
    const measured = this.#measured();
    const clientId = measured?.publish.clientId ?? null;
    let ended = "";
    // A publish that has gone on standby has not ended.
    if (this.#clientId !== null && clientId !== this.#clientId && !this.#runs(this.#clientId)) {
      const reason = await endReasonOf(this.#deps.db, this.#clientId);
      this.#polls += 1;
      if (reason === null && this.#polls < REASON_POLLS) {
        this.#state = state;
        return;
      }
      ended = eventText("ended", { at, client_id: this.#clientId, reason });
    }
    this.#polls = 0;
    const isNew = state !== this.#state || clientId !== this.#clientId;
    this.#state = state;
    this.#clientId = clientId;
    const numbers = measured && this.#numbers(measured);
    if (isNew || ended !== "") this.channel.send(ended + this.#whole());
    else if (numbers !== null) this.channel.send(numbers);
    else this.channel.tellLate();
    this.#elsewhere = state === "live" && clientId === null && this.#deps.others != null ? this.#elsewhere + 1 : 0;
    if (state === "deleted" || this.#elsewhere >= ELSEWHERE_POLLS) this.channel.end();
  }

  #measured(): Measured | null {
    return this.#deps.measurements.ofStream(this.#stream.organisationId, this.#stream.id);
  }

  #runs(clientId: number): boolean {
    return this.#deps.sessions.show(this.#stream.organisationId, clientId) !== undefined;
  }

  #whole(): string {
    const { sessions, measurements } = this.#deps;
    const session = this.#clientId === null ? undefined : sessions.show(this.#stream.organisationId, this.#clientId);
    const record =
      session === undefined
        ? null
        : sessionWithDiagnostics(session, sessions.players(session), measurements.numbersOf(session.clientId));
    return eventText("stream", { at: this.#at, state: this.#state, session: record });
  }

  #numbers(measured: Measured): string {
    const { clientId } = measured.publish;
    const upstreams = this.#deps.sessions.show(this.#stream.organisationId, clientId)?.upstreams ?? [];
    const now = upstreamsText(upstreams);
    const isKnown = now === this.#upstreams;
    this.#upstreams = now;
    const findings = findingRecords(measured.findings);
    const found = JSON.stringify(findings);
    const isAsBefore = found === this.#findings;
    this.#findings = found;
    return eventText("numbers", {
      at: this.#at,
      client_id: clientId,
      numbers: numbersRecord(measured.numbers),
      bytes_in: measured.snapshot?.bytesIn ?? 0,
      bytes_out: measured.snapshot?.bytesOut ?? 0,
      players: playersOf(measured),
      ...(isKnown ? {} : { upstreams: upstreams.map(upstreamRecord) }),
      ...(isAsBefore ? {} : { findings }),
    });
  }
}

function upstreamsText(upstreams: readonly LiveUpstream[]): string {
  return JSON.stringify(upstreams.map(({ bytesOut: _, ...upstream }) => upstream));
}
