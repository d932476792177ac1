// The exact bytes of a webhook body (W1): custom arguments first and unchanged, then the fixed fields in their order.

/** The fields common to every event of one publish. */
export interface WebhookSubject {
  /** Custom arguments as sent; null or empty when there were none. */
  readonly arguments: Uint8Array | null;
  readonly name: string;
  readonly app: string;
  /** IP address of the broadcaster. */
  readonly address: string;
  readonly clientId: number;
}

/** Body of `publish`. */
export function publishBody(subject: WebhookSubject): Uint8Array {
  const { name, app } = subject;
  return withArguments(subject, [["call", "publish"], ["name", name], ["app", app], ...origin(subject)]);
}

/** Body of `update_publish`. `time`: whole seconds since acceptance; `timestamp`: newest packet time in ms (W7).
 *  `extras`: fields that the organisation requested, after the documented ones. */
export function updateBody(
  subject: WebhookSubject,
  progress: {
    readonly time: number;
    readonly timestamp: number;
    readonly extras?: readonly (readonly [name: string, value: string])[];
  },
): Uint8Array {
  return withArguments(subject, [
    ["call", "update_publish"],
    ["time", String(progress.time)],
    ["timestamp", String(progress.timestamp)],
    ["name", subject.name],
    ["app", subject.app],
    ...origin(subject),
    ...(progress.extras ?? []).map(([name, value]): Field => [name, value]),
  ]);
}

/** Body of `publish_done`, with the audio and video payload bytes received from the encoder and sent out (W8). */
export function doneBody(
  subject: WebhookSubject,
  { bytesIn, bytesOut }: { readonly bytesIn: number; readonly bytesOut: number },
): Uint8Array {
  const [before, after] = doneBodyAround(subject, bytesIn);
  return Buffer.concat([before, Buffer.from(String(bytesOut)), after]);
}

/** The body of `publish_done` before and after the number of bytes sent out. */
export function doneBodyAround(subject: WebhookSubject, bytesIn: number): readonly [Uint8Array, Uint8Array] {
  const before = withArguments(subject, [
    ["call", "publish_done"],
    ["name", subject.name],
    ["bytes_in", String(bytesIn)],
    ["bytes_out", ""],
  ]);
  return [before, Buffer.concat([Buffer.from("&"), fixedFields([["app", subject.app], ...origin(subject)])])];
}

/** What an alert says. */
export interface AlertText {
  /** `upstream_lost`, `upstream_back`, `media_lost`, `media_back`, `webhook_failing` or `webhook_back`. */
  readonly event: string;
  /** Since when, epoch ms. */
  readonly since: number;
  /** The upstream's id; null where there is none. */
  readonly upstream: string | null;
  /** In words, for people. */
  readonly detail: string;
}

/** Body of `health`. `subject`: null for an alert that is about no publish: the fields of a publish are left out. */
export function healthBody(subject: WebhookSubject | null, { event, since, upstream, detail }: AlertText): Uint8Array {
  const fields: Field[] = [
    ["call", "health"],
    ["event", event],
    ["since", new Date(since).toISOString()],
    ...(upstream === null ? [] : [["upstream", upstream] satisfies Field]),
    ["detail", detail],
  ];
  if (subject === null) return withArguments({ arguments: null }, fields);
  return withArguments(subject, [...fields, ["name", subject.name], ["app", subject.app], ...origin(subject)]);
}

/** The pairs of a body, Headgate's own apart from the broadcaster's, whose values may be secrets. Our first field is
 *  `call`, and no custom argument has that name (W3). */
export function pairsOf(body: string): { readonly custom: readonly string[]; readonly own: readonly string[] } {
  const pairs = body.split("&");
  const first = pairs.findIndex((pair) => pair.startsWith("call="));
  const at = first === -1 ? pairs.length : first;
  return { custom: pairs.slice(0, at), own: pairs.slice(at) };
}

type Field = [name: string, value: string];

function origin(subject: WebhookSubject): Field[] {
  return [
    ["addr", subject.address],
    ["clientid", String(subject.clientId)],
  ];
}

/** As application/x-www-form-urlencoded (W4; WHATWG URL, section 5.2). */
function fixedFields(fields: Field[]): Buffer {
  return Buffer.from(new URLSearchParams(fields).toString(), "latin1");
}

function withArguments(subject: Pick<WebhookSubject, "arguments">, fields: Field[]): Uint8Array {
  const fixed = fixedFields(fields);
  if (subject.arguments === null || subject.arguments.length === 0) return fixed;
  return Buffer.concat([subject.arguments, Buffer.from("&"), fixed]);
}
