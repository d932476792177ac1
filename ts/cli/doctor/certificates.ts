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
        detail: "none: HTTPS and RTMPS must be provided by a proxy",
        why: "browsers allow camera and microphone only on HTTPS pages, and keys and stream names cross the network unencrypted",
        remedy: "set http.tls_cert and http.tls_key, or put a TLS proxy in front and set http.public_url",
      },
    ];
  }
  return reports.map(({ files, faults, warnings, own }): Finding => {
    const what = `certificate ${files.certFile}`;
    const names = `${files.section}.tls_cert and ${files.section}.tls_key`;
    if (own === null || faults.length > 0) {
      return {
        what,
        state: "bad",
        detail: faults.join("; "),
        why: "headgate serve does not start with files that it cannot use",
        remedy: `set ${names} to the PEM files of one certificate: its chain, own certificate first, and its key without a passphrase`,
      };
    }
    if (warnings.length > 0) {
      return {
        what,
        state: "warning",
        detail: warnings.join("; "),
        why: "browsers, encoders and players reject the connection",
        remedy: "renew it; the running service uses the new files within seconds",
      };
    }
    const detail = `for ${own.subjectAltName ?? own.subject}, until ${own.validTo}`;
    if (Date.parse(own.validTo) - now >= SOON_MS) return good(what, detail);
    return {
      what,
      state: "warning",
      detail,
      why: "it expires within two weeks, and then browsers, encoders and players reject the connection",
      remedy: "renew it; the running service uses the new files within seconds",
    };
  });
}
