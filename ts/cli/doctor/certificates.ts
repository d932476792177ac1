// Doctor: the certificate files of HTTPS and RTMPS.
import { inspectCertificates } from "../../certificate.ts";
import type { Config } from "../../config.ts";
import { type Finding, good } from "./finding.ts";

/** Warns about a certificate that expires within this time, ms. */
const SOON_MS = 14 * 86_400_000;

/** `now`: epoch ms. */
export function certificates(config: Config, now: number): readonly Finding[] {
  const reports = inspectCertificates(config, now);
  if (reports.length === 0) {
    return [
      {
        what: "certificate",
        state: "warning",
        detail: "none: HTTPS and RTMPS must be given by a proxy",
        why: "browsers give camera and microphone to HTTPS pages only, and keys and stream names cross the network in the clear",
        remedy: "set http.tls_cert and http.tls_key, or put a TLS proxy in front and set http.public_url",
      },
    ];
  }
  return reports.map(({ files, faults, warnings, own }): Finding => {
    const what = `certificate ${files.certFile}`;
    const names = `${files.section}.tls_cert and ${files.section}.tls_key`;
    if (own === null || faults.length > 0) {
      return {
        ...{ what, state: "bad", detail: faults.join("; ") },
        why: "headgate serve refuses to start with files that it cannot use",
        remedy: `let ${names} name the PEM files of one certificate: its chain, own certificate first, and its key without a passphrase`,
      };
    }
    if (warnings.length > 0) {
      return {
        ...{ what, state: "warning", detail: warnings.join("; ") },
        why: "browsers, encoders and players refuse the connection",
        remedy: "renew it; the running service takes the new files within seconds",
      };
    }
    const detail = `for ${own.subjectAltName ?? own.subject}, until ${own.validTo}`;
    if (Date.parse(own.validTo) - now >= SOON_MS) return good(what, detail);
    return {
      ...{ what, state: "warning", detail },
      why: "it ends within two weeks, and then browsers, encoders and players refuse the connection",
      remedy: "renew it; the running service takes the new files within seconds",
    };
  });
}
