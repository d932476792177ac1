// Doctor: whether the customers' webhooks can be reached in the way the service reaches them. No event is sent: a HEAD
// request changes nothing, and any response to it shows that calls get through.
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { rootCertificates } from "node:tls";
import { clock } from "../../clock.ts";
import type { Config } from "../../config.ts";
import { checkWebhookUrl, guardedLookup } from "../../publish/addresses/address-guard.ts";
import { failureOf } from "../../publish/webhook/failure.ts";
import { type Finding, good } from "./finding.ts";
import type { Reference } from "./machine.ts";

/** Webhooks tested, those of the newest organisations first; the finding says how many were left out. */
const TRIED_LIMIT = 20;

export interface CustomerWebhook {
  /** Of the organisation. */
  readonly name: string;
  readonly url: string;
  /** It gets copies and decides nothing. */
  readonly isSecond: boolean;
}

export interface TriedWebhooks {
  readonly findings: readonly Finding[];
  /** The times that the responding servers reported. */
  readonly dates: readonly Reference[];
}

export async function webhooks(config: Config, all: readonly CustomerWebhook[]): Promise<TriedWebhooks> {
  if (all.length === 0) {
    return {
      findings: [
        {
          what: "webhook",
          state: "warning",
          detail: "no organisation has a webhook",
          why: "anyone who knows a stream name may publish and play it",
          remedy: "PUT /organisation/webhook, or require web tokens (require_token of PUT /organisation/settings)",
        },
      ],
      dates: [],
    };
  }
  const tried = await Promise.all(all.slice(0, TRIED_LIMIT).map((webhook) => tryOne(config, webhook)));
  const left = all.length - tried.length;
  return {
    findings: [
      ...tried.map(({ finding }) => finding),
      ...(left > 0
        ? [good("webhooks", `${left} more were not tried: headgate webhook test calls one through the running service`)]
        : []),
    ],
    dates: tried.flatMap(({ source, date }) => (date === null ? [] : [{ source, ...date }])),
  };
}

async function tryOne(config: Config, { name, url, isSecond }: CustomerWebhook) {
  const source = new URL(url).host;
  const what = `${isSecond ? "second webhook" : "webhook"} of ${name} at ${source}`; // its path and query may be secret
  const refused = await checkWebhookUrl(url, { dev: config.dev });
  try {
    if (refused !== null) throw new Error(refused.reason);
    const { status, date } = await head(config, url);
    return { source, date, finding: good(what, `responds (${status} to HEAD)`) };
  } catch (error) {
    const finding: Finding = {
      what,
      state: isSecond ? "warning" : "bad",
      detail: `cannot be reached: ${failureOf(error).detail}`,
      why: isSecond
        ? "this organisation gets no copies and no alerts at it; broadcasts are not affected"
        : "every publish of this organisation is rejected while its webhook does not respond",
      remedy: `check name, firewall and certificate of ${source} (webhook.ca sets a certificate authority of your own); then run headgate webhook test${isSecond ? " --copies" : ""}`,
    };
    return { source, date: null, finding };
  }
}

function head(
  config: Config,
  url: string,
): Promise<{ readonly status: number; readonly date: Omit<Reference, "source"> | null }> {
  const { ca, deadlineMs } = config.webhook;
  const options = {
    method: "HEAD",
    agent: false as const,
    timeout: deadlineMs,
    lookup: guardedLookup({ dev: config.dev }),
  };
  return new Promise((resolve, reject) => {
    const request = url.startsWith("https:")
      ? requestHttps(url, { ...options, ...(ca !== null && { ca: [...rootCertificates, ca] }) })
      : requestHttp(url, options);
    request.on("response", (response) => {
      const at = Date.parse(response.headers.date ?? "");
      response.destroy();
      resolve({ status: response.statusCode ?? 0, date: Number.isNaN(at) ? null : { at, readAt: clock.now() } });
    });
    request.on("timeout", () => request.destroy(new Error(`no response within ${deadlineMs} ms`)));
    request.on("error", reject);
    request.end();
  });
}
