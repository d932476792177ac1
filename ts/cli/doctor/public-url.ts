// Doctor: whether http.public_url leads to this machine, tested as a caller would use it.
import { randomBytes } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type Certificate, readCertificate } from "../../certificate.ts";
import type { Config } from "../../config.ts";
import { failureOf } from "../../publish/webhook/failure.ts";
import { type Finding, good } from "./finding.ts";

/** How long a response may take, ms. */
const ANSWER_LIMIT_MS = 5_000;
/** A path that every running headgate serves to anybody. */
const PATH = "/.well-known/jwks.json";

/** No finding without `http.public_url`: records then use the host of each request. */
export async function publicUrl({ http }: Config): Promise<readonly Finding[]> {
  if (http.publicUrl === null) return [];
  const what = `http.public_url ${http.publicUrl}`;
  const why = "stream records, WHIP sessions and broadcast links contain this address";
  const sign = randomBytes(16).toString("hex");
  const server = await standIn(http, sign);
  try {
    const said = await fetch(http.publicUrl + PATH, {
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
    });
    const text = await said.text();
    // When the port is taken, a running headgate responds.
    const isOurs = server === null ? text.includes('"keys"') : text.includes(sign);
    if (isOurs) return [good(what, "leads here")];
    const detail = `leads elsewhere: ${PATH} returned ${said.status}, but not from this machine`;
    const remedy = `point the DNS name or the proxy to port ${http.port} of this machine`;
    return [{ what, state: "bad", detail, why, remedy }];
  } catch (error) {
    const reason = failureOf(error instanceof Error && error.cause !== undefined ? error.cause : error).detail;
    return [
      {
        what,
        state: "warning",
        detail: `does not respond when called from here: ${reason}`,
        why,
        remedy: `check the name, the certificate, the firewall and the proxy in front of port ${http.port} (some networks can reach their own public address only from outside)`,
      },
    ];
  } finally {
    server?.closeAllConnections();
    server?.close();
  }
}

/** A server on the HTTP port that responds with `sign` to every request; null when the port cannot be opened. */
async function standIn(http: Config["http"], sign: string): Promise<Server | null> {
  const answer: RequestListener = (_, response) => response.end(sign);
  let certificate: Certificate | null = null;
  try {
    certificate = http.tls === null ? null : readCertificate(http.tls);
  } catch {
    return null; // reported by a finding of its own
  }
  const server = certificate === null ? createServer(answer) : createTlsServer(certificate, answer);
  return await new Promise((resolve) => {
    server.once("error", () => resolve(null));
    server.listen(http.port, http.host, () => resolve(server));
  });
}
