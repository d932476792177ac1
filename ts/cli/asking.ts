// Calls a running service through its management API on behalf of commands: its URL, the key, the trusted certificate,
// and its response.
import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { rootCertificates } from "node:tls";
import { Agent, fetch, type Response } from "undici/index.js";
import { readAuthorities } from "../certificate.ts";
import { type Config, loadConfig, readApiKey, readCaFile } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { withBrackets } from "../network.ts";
import { reasonOf } from "../reason.ts";
import { type GivenFlags, readFlags } from "./flags.ts";

/** How long the service may take to answer, and be silent within its answer, ms: an upstream's test and a little more. */
const ANSWER_LIMIT_MS = 20_000;
/** Records that one page of a list may have. */
const PAGE_LIMIT = 500;
/** Pause after an answer that the key asks too often, ms, and how many of them in a row. */
const TOO_OFTEN_MS = 1_000;
const WAITS_LIMIT = 60;
/** Listening hosts that mean every interface. */
const EVERYWHERE = ["0.0.0.0", "::", ""];
/** TLS errors for a certificate without a trusted issuer (OpenSSL's X509_V_ERR_…, as Node names them). */
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

/** The service returned an error, or did not answer. */
export class ServiceAnswered extends ServiceError {
  readonly code = "service_answered";
  /** HTTP status; null for no response. */
  readonly status: number | null;
  constructor(message: string, status: number | null, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** The JSON of a response. The key is HEADGATE_API_KEY or in HEADGATE_API_KEY_FILE. Throws `ConfigInvalid` when URL or
 *  key are unknown, or when the certificate is not trusted; `ServiceAnswered` when the response is an error or does not
 *  come. */
export async function ask(flags: GivenFlags, method: string, path: string, body?: object): Promise<unknown> {
  return await asked(flags, method, path, body, answerOf);
}

/** A list page by page, the first `quantity` records of it. `query`: its filters; `rowsOf`: the records of a page. Throws as
 *  `ask` does. */
export async function askPages<Page, Row>(
  flags: GivenFlags,
  { path, query, quantity }: { readonly path: string; readonly query: URLSearchParams; readonly quantity: number },
  rowsOf: (page: Page) => readonly Row[],
): Promise<{ readonly first: Page; readonly rows: readonly Row[]; readonly hasMore: boolean }> {
  const rows: Row[] = [];
  let first: Page | null = null;
  for (let cursor: string | null = null; ; ) {
    const left = quantity - rows.length;
    const of = new URLSearchParams(query);
    of.set("quantity", String(Math.min(left, PAGE_LIMIT)));
    if (cursor !== null) of.set("cursor", cursor);
    const page = await pageOf(flags, `${path}?${of}`);
    first ??= page.answer as Page;
    rows.push(...rowsOf(page.answer as Page).slice(0, left));
    cursor = page.next;
    if (cursor === null || rows.length >= quantity) return { first, rows, hasMore: cursor !== null };
  }
}

interface AnsweredPage {
  readonly answer: unknown;
  readonly next: string | null;
}

/** One page. Waits while the key has asked too often. */
async function pageOf(flags: GivenFlags, path: string): Promise<AnsweredPage> {
  for (let waits = 0; ; waits += 1) {
    try {
      return await asked(flags, "GET", path, undefined, async (response) => ({
        answer: await answerOf(response),
        next: response.headers.get("x-next-cursor"),
      }));
    } catch (error) {
      const isTooOften = error instanceof ServiceAnswered && error.status === 429;
      if (!isTooOften || waits === WAITS_LIMIT) throw error;
      await pause(TOO_OFTEN_MS);
    }
  }
}

/** Saves the bytes of a response to a file. Throws as `ask` does, and `ServiceAnswered` when they do not all arrive or
 *  cannot be written. */
export async function fetchTo(flags: GivenFlags, path: string, file: FileHandle): Promise<void> {
  await asked(flags, "GET", path, undefined, async (response) => {
    if (!response.ok || response.body === null) return await answerOf(response);
    return await pipeline(Readable.fromWeb(response.body), file.createWriteStream()).catch((cause: unknown) => {
      throw new ServiceAnswered(`${path} could not be saved: ${reasonOf(cause)}`, null, { cause });
    });
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
    throw new ConfigInvalid(`--url ${url} is not an address: it must be http:// or https:// with a host`);
  }
  const key = readApiKey();
  if (!/^[\x21-\x7e]+$/.test(key)) throw new ConfigInvalid("HEADGATE_API_KEY contains characters that no API key has");
  const headers = { "x-service-apikey": key, "content-type": "application/json" };
  const caFile = typeof flags.ca === "string" ? flags.ca : readCaFile();
  const ca = caFile === null ? null : readAuthorities(caFile, typeof flags.ca === "string" ? "--ca" : "HEADGATE_CA");
  const dispatcher = new Agent({
    headersTimeout: ANSWER_LIMIT_MS,
    bodyTimeout: ANSWER_LIMIT_MS,
    connect: { timeout: ANSWER_LIMIT_MS, ...(ca === null ? {} : { ca: [...rootCertificates, ca] }) },
  });
  try {
    const response = await fetch(new URL(path, url), {
      method,
      headers,
      dispatcher,
      redirect: "manual", // another host must not receive the key
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw noAnswer(url, error);
    });
    return await read(response);
  } finally {
    await dispatcher.close();
  }
}

/** Throws `ConfigInvalid` when it redirects; `ServiceAnswered` for an error, and for what no headgate answers. */
async function answerOf(response: Response): Promise<unknown> {
  const { origin } = new URL(response.url);
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    const to = response.headers.get("location") ?? "another address";
    throw new ConfigInvalid(`${origin} redirects to ${to}: give the address of the service itself (--url)`);
  }
  const text = await response.text().catch((cause: unknown) => {
    throw new ServiceAnswered(`the answer of ${origin} broke off: ${reasonOf(cause)}`, null, { cause });
  });
  const answer = recordOf(text);
  if (response.ok && answer !== null) return answer;
  if (response.ok) throw new ServiceAnswered(`${origin} answers, but not as headgate does (--url)`, response.status);
  const { message, code, userinfo } = answer?.error ?? { message: "no response from headgate", code: 0, userinfo: {} };
  const more = Object.keys(userinfo).length === 0 ? "" : ` ${JSON.stringify(userinfo)}`;
  throw new ServiceAnswered(`${response.status}: ${message} (code ${code})${more}`, response.status);
}

interface Answered {
  readonly error?: { readonly message: string; readonly code: number; readonly userinfo: object };
}

/** Every answer of the API is an object or a list. */
function recordOf(text: string): Answered | null {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" ? answer : null;
  } catch {
    return null;
  }
}

/** The error for a person whose request got no response. */
function noAnswer(url: string, error: unknown): ServiceError {
  // fetch wraps the actual error.
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
  // An HTTPS port closes a plain HTTP connection without a response.
  const isCut = ["UND_ERR_SOCKET", "ECONNRESET"].includes(code) && url.startsWith("http:");
  const advice = isCut ? "is it https:// there? (--url)" : "is headgate running there? (--url)";
  return new ServiceAnswered(`no answer from ${url}: ${advice}`, null, { cause });
}

/** The members of Node's TLS errors. */
interface TlsFailure {
  readonly code?: string;
  readonly message?: string;
  readonly cert?: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string } };
}

/** The URL of the service: from `--url`, or that of this machine as configured. Throws `ConfigInvalid`. */
function serviceUrl(flags: GivenFlags): string {
  if (typeof flags.url === "string") return flags.url;
  const { config } = loadConfig(readFlags(flags));
  if (config.http.port === 0)
    throw new ConfigInvalid("http.port is 0, any free port: give the address of the service with --url");
  return configuredUrl(config);
}

/** The URL of the service on this machine. */
export function configuredUrl({ http }: Pick<Config, "http">): string {
  const host = EVERYWHERE.includes(http.host) ? "127.0.0.1" : http.host;
  return `${http.tls === null ? "http" : "https"}://${withBrackets(host)}:${http.port}`;
}
