// Commands that ask a running service through its management API: where it is, with which key, and what it said.
import { loadConfig, readApiKey } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { storeFlags } from "./at-store.ts";
import { type GivenFlags, readFlags } from "./flags.ts";

/** How long the service may take to answer, ms: a webhook's deadline and a little. */
const ANSWER_LIMIT_MS = 15_000;
/** Hosts to listen on that mean every interface. */
const EVERYWHERE = ["0.0.0.0", "::", ""];

/** Flags of every command that asks, as cleye takes them. */
export const askingFlags = {
  url: { type: String, description: "address of the service; default: this machine, at the configured http.port" },
  config: storeFlags.config,
  json: storeFlags.json,
} as const;

/** The service said no, or nothing. */
class ServiceAnswered extends ServiceError {
  readonly code = "service_answered";
}

/** The JSON of an answer. The key is HEADGATE_API_KEY or in HEADGATE_API_KEY_FILE. Throws `ConfigInvalid` when it is not
 *  known whom to ask or with which key, `ServiceAnswered` when the answer is an error or does not come. */
export async function ask(flags: GivenFlags, method: string, path: string, body?: object): Promise<unknown> {
  const url = typeof flags.url === "string" ? flags.url : configuredUrl(flags);
  if (!URL.canParse(path, url)) throw new ConfigInvalid(`--url ${url} is no address`);
  const headers = { "x-service-apikey": readApiKey(), "content-type": "application/json" };
  let response: Response;
  try {
    response = await fetch(new URL(path, url), {
      method,
      headers,
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw new ServiceAnswered(`no answer from ${url}: is headgate running there? (--url)`, { cause });
  }
  const answer = (await response.json().catch(() => ({}))) as {
    readonly error?: { readonly message: string; readonly code: number; readonly userinfo: object };
  };
  if (response.ok) return answer;
  const { message, code, userinfo } = answer.error ?? { message: "no answer of headgate", code: 0, userinfo: {} };
  const more = Object.keys(userinfo).length === 0 ? "" : ` ${JSON.stringify(userinfo)}`;
  throw new ServiceAnswered(`${response.status}: ${message} (code ${code})${more}`);
}

function configuredUrl(flags: GivenFlags): string {
  const { http } = loadConfig(readFlags(flags)).config;
  if (http.port === 0) throw new ConfigInvalid("http.port is 0, any free one: say by --url where the service is");
  const host = EVERYWHERE.includes(http.host) ? "127.0.0.1" : http.host;
  return `${http.tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${http.port}`;
}
