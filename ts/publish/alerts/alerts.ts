// Alerts to customers: an upstream is lost or back, a stream has no media or has it again, the webhook fails or answers
// again. What is wrong with a publish is decided in monitoring/health.ts alone; here it becomes events, for those who want
// them.
import type { Logger } from "pino";
import { isFailedCall } from "../../text/webhook-words.ts";
import type { Finding } from "../monitoring/health.ts";
import type { PublishEvent, PublishEvents } from "../publish-events.ts";
import { identityOf } from "../record.ts";
import type { AlertText } from "../webhook/body.ts";
import type { AlertRecords } from "./alert-records.ts";
import { AlertStates } from "./alert-states.ts";

/** The webhook fails when this many calls in a row have failed, over this time, ms. */
const FAILED_CALLS = 3;
const FAILED_FOR_MS = 10_000;
/** Organisations whose failing calls are counted. */
const FAILING_LIMIT = 10_000;

export interface AlertsDeps {
  readonly events: Pick<PublishEvents, "listen">;
  readonly records: Pick<AlertRecords, "add">;
  readonly metrics: { countAlert(event: string): void };
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Pick<Logger, "info">;
}

type Sample = Extract<PublishEvent, { kind: "sample" }>;
type Asked = Extract<PublishEvent, { kind: "asked" }>;

export function watchForAlerts(deps: AlertsDeps): void {
  const { events, records, metrics, clock, log } = deps;
  const states = new AlertStates();
  /** Failed calls in a row of organisations, and the first one's time. */
  const failing = new Map<string, { readonly count: number; readonly since: number }>();

  events.listen((event) => {
    if (event.kind === "sample") noteSample(event);
    if (event.kind === "asked") noteCall(event);
  });

  function noteSample(sample: Sample): void {
    noteMedia(sample);
    for (const upstream of sample.reading.snapshot.upstreams) noteUpstream(sample, upstream);
  }

  function noteMedia({ publish: { intent }, reading: { findings } }: Sample): void {
    const { organisationId, streamId, clientId, backup } = intent;
    const finding = findings.find(({ code }) => code === "silent" || code === "no_media");
    const what = `media of ${streamId} ${backup ? "backup" : ""}`;
    const now = clock.now();
    if (!states.report(organisationId, what, finding !== undefined, clientId, now)) return;
    const alert: Omit<AlertText, "upstream"> =
      finding === undefined
        ? { event: "media_back", since: now, detail: "Media arrives again" }
        : { event: "media_lost", since: finding.since, detail: wordsOf(finding) };
    raise(intent, { ...alert, upstream: null });
  }

  function noteUpstream(sample: Sample, { id, state }: Sample["reading"]["snapshot"]["upstreams"][number]): void {
    const { intent } = sample.publish;
    const { organisationId, streamId, clientId, backup } = intent;
    const finding = sample.reading.findings.find(({ code, about }) => code === "upstream_down" && about === id);
    if (finding === undefined && state !== "sending") return; // it connects
    const what = `upstream ${id} of ${streamId} ${backup ? "backup" : ""}`;
    const now = clock.now();
    if (!states.report(organisationId, what, finding !== undefined, clientId, now)) return;
    if (finding === undefined) {
      raise(intent, {
        event: "upstream_back",
        since: now,
        upstream: id,
        detail: "The upstream receives the stream again",
      });
    } else raise(intent, { event: "upstream_lost", since: finding.since, upstream: id, detail: wordsOf(finding) });
  }

  function raise(intent: Sample["publish"]["intent"], text: AlertText): void {
    metrics.countAlert(text.event);
    log.info({ ...identityOf(intent), event: text.event, upstream: text.upstream }, "alert raised");
    const { organisationId, webhook, trace } = intent;
    records.add({ organisationId, subject: intent, webhook, trace, text });
  }

  /** Alerts are not counted: an answer to one says nothing about broadcasts. */
  function noteCall({ call, organisationId, answer, isTrial }: Asked): void {
    if (isTrial || call === "health") return;
    const now = clock.now();
    const status = answer.outcome === "answered" ? answer.status : null;
    const hasFailed = isFailedCall(call, status);
    const known = failing.get(organisationId);
    const count = (known?.count ?? 0) + 1;
    // A time in the future means that the clock was set back.
    const since = Math.min(known?.since ?? now, now);
    if (hasFailed && (known !== undefined || failing.size < FAILING_LIMIT))
      failing.set(organisationId, { count, since });
    else failing.delete(organisationId);
    const fails = hasFailed && count >= FAILED_CALLS && now - since >= FAILED_FOR_MS;
    if (hasFailed && !fails) return;
    if (!states.report(organisationId, "webhook", fails, 0, now)) return;
    const event = fails ? "webhook_failing" : "webhook_back";
    const cause = answer.outcome === "answered" ? `status ${answer.status}` : answer.cause;
    const detail = fails ? `The last ${count} calls to the webhook failed (${cause})` : "The webhook answers again";
    metrics.countAlert(event);
    log.info({ organisation: organisationId, event }, "alert raised");
    const text = { event, since: fails ? since : now, upstream: null, detail };
    records.add({ organisationId, subject: null, webhook: null, trace: null, text });
  }
}

const wordsOf = ({ words }: Finding): string => words;
