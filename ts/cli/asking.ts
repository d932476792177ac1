// Commands that ask a running service through its management API: where it is, with which key, whose certificate is
// trusted, and what it said.
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { rootCertificates } from "node:tls";
import { Agent, fetch, type Response } from "undici/index.js";
import { readAuthorities } from "../certificate.ts";
import { type Config, loadConfig, readApiKey, readCaFile } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { withBrackets } from "../network.ts";
import { type GivenFlags, readFlags } from "./flags.ts";

/** How long the service may take to answer, ms: a webhook's deadline and a little. */
const ANSWER_LIMIT_MS = 15_000;
/** Hosts to listen on that mean every interface. */
const EVERYWHERE = ["0.0.0.0", "::", ""];
/** How TLS says that nobody vouches for a certificate (OpenSSL's X509_V_ERR_…, as Node names them). */
const UNTRUSTED = [
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "INVALID_CA",
];

/** The service said no, or nothing. */
export class ServiceAnswered extends ServiceError {
  readonly code = "service_answered";
  /** Of HTTP; null for no answer. */
  readonly status: number | null;
  constructor(message: string, status: number | null, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** The JSON of an answer. The key is HEADGATE_API_KEY or in HEADGATE_API_KEY_FILE. Throws `ConfigInvalid` when it is not
 *  known whom to ask or with which key, or when its certificate is not trusted; `ServiceAnswered` when the answer is an
 *  error or does not come. */
export async function ask(flags: GivenFlags, method: string, path: string, body?: object): Promise<unknown> {
  return await asked(flags, method, path, body, answerOf);
}

/** The bytes of an answer, to a file that does not exist yet. Throws as `ask` does, and when the file cannot be made. */
export async function fetchTo(flags: GivenFlags, path: string, file: string): Promise<void> {
  await asked(flags, "GET", path, undefined, async (response) => {
    if (!response.ok || response.body === null) await answerOf(response);
    else await pipeline(Readable.fromWeb(response.body), createWriteStream(file, { flags: "wx", mode: 0o600 }));
  });
}

async function asked<T>(
  flags: GivenFlags,
  method: string,
  path: string,
  body: object | undefined,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const url = serviceUrl(flags);
  if (!URL.canParse(path, url) || !/^https?:/i.test(url)) {
    throw new ConfigInvalid(`--url ${url} is no address: it must be http:// or https:// with a host`);
  }
  const key = readApiKey();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new ConfigInvalid("HEADGATE_API_KEY contains characters that no API key has");
  const headers = { "x-service-apikey": key, "content-type": "application/json" };
  const caFile = typeof flags.ca === "string" ? flags.ca : readCaFile();
  const ca = caFile === null ? null : readAuthorities(caFile, typeof flags.ca === "string" ? "--ca" : "HEADGATE_CA");
  const dispatcher = new Agent(ca === null ? {} : { connect: { ca: [...rootCertificates, ca] } });
  try {
    const response = await fetch(new URL(path, url), {
      method,
      headers,
      dispatcher,
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw noAnswer(url, error);
    });
    return await read(response);
  } finally {
    await dispatcher.close();
  }
}

async function answerOf(response: Response): Promise<unknown> {
  const answer = (await response.json().catch(() => ({}))) as {
    readonly error?: { readonly message: string; readonly code: number; readonly userinfo: object };
  };
  if (response.ok) return answer;
  const { message, code, userinfo } = answer.error ?? { message: "no response from headgate", code: 0, userinfo: {} };
  const more = Object.keys(userinfo).length === 0 ? "" : ` ${JSON.stringify(userinfo)}`;
  throw new ServiceAnswered(`${response.status}: ${message} (code ${code})${more}`, response.status);
}

/** What to tell a person whose request had no answer. */
function noAnswer(url: string, error: unknown): ServiceError {
  // fetch wraps what went wrong.
  const cause = (error as { readonly cause?: unknown }).cause ?? error;
  const { code = "", message = "", cert } = cause as TlsFailure;
  const { host, hostname } = new URL(url);
  if (UNTRUSTED.includes(code)) {
    return new ConfigInvalid(
      `the certificate of ${host} is not trusted here (${message}): set --ca FILE or HEADGATE_CA to the PEM file of its authority, or of the certificate itself if it is self-signed`,
      { cause },
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const names = cert?.subjectaltname ?? cert?.subject?.CN ?? "another name";
    return new ConfigInvalid(
      `the certificate of ${host} is for ${names}, not for ${hostname}: use --url with a name that the certificate has`,
      { cause },
    );
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    const fault = code === "CERT_HAS_EXPIRED" ? "has expired" : "is not valid yet";
    return new ConfigInvalid(`the certificate of ${host} ${fault}: renew it, and check the clock of this machine`, {
      cause,
    });
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_")) {
    return new ConfigInvalid(`${host} does not respond with valid HTTPS (${message}): is it http:// (--url)?`, {
      cause,
    });
  }
  // A port of HTTPS hangs up on plain HTTP.
  const isCut = ["UND_ERR_SOCKET", "ECONNRESET"].includes(code) && url.startsWith("http:");
  const advice = isCut ? "is it https:// there? (--url)" : "is headgate running there? (--url)";
  return new ServiceAnswered(`no answer from ${url}: ${advice}`, null, { cause });
}

/** What Node's errors of TLS tell. */
interface TlsFailure {
  readonly code?: string;
  readonly message?: string;
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } };
}

/** Where the service is: as `--url` says, or on this machine as it is configured. Throws `ConfigInvalid`. */
function serviceUrl(flags: GivenFlags): string {
  if (typeof flags.url === "string") return flags.url;
  const { config } = loadConfig(readFlags(flags));
  if (config.http.port === 0)
    throw new ConfigInvalid("http.port is 0, any free port: give the address of the service with --url");
  return configuredUrl(config);
}

/** The service on this machine. */
export function configuredUrl({ http }: Pick<Config, "http">): string {
  const host = EVERYWHERE.includes(http.host) ? "127.0.0.1" : http.host;
  return `${http.tls === null ? "http" : "https"}://${withBrackets(host)}:${http.port}`;
}
