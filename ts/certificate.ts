// The certificate files of HTTPS and RTMPS: read at the start and again when they change, with every fault in them
// explained.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Logger } from "pino";
import { ConfigInvalid } from "./errors.ts";
import { reasonOf } from "./reason.ts";

/** How often the files are checked: renewals replace them by renaming, which an inotify watch would miss, ms. */
const CHECK_EVERY_MS = 2_000;

export interface CertificateFiles {
  /** The settings that name them: `http.tls_cert` and `http.tls_key`, or those of rtmp. */
  readonly section: "http" | "rtmp";
  readonly certFile: string;
  readonly keyFile: string;
}

/** Both in PEM. */
export interface Certificate {
  /** The certificate itself first, then its chain. */
  readonly cert: string;
  readonly key: string;
}

/** Findings about certificate files. */
export interface CertificateReport {
  readonly files: CertificateFiles;
  /** Why they cannot be used, a sentence each; empty when they can. */
  readonly faults: readonly string[];
  /** Why clients may still reject them. */
  readonly warnings: readonly string[];
  /** The certificate itself; null when there is none in the file. */
  readonly own: X509Certificate | null;
}

/** Both files as text. Throws `ConfigInvalid` with a line for each fault. */
export function readCertificate(files: CertificateFiles): Certificate {
  const { cert, key, faults } = readBoth(files);
  if (faults.length > 0) throw new ConfigInvalid(faults.join("\n"));
  return { cert, key };
}

/** Inspects the files of HTTPS and of RTMPS, only once when they are the same. `now`: epoch ms. Never throws. */
export function inspectCertificates(
  config: {
    readonly http: { readonly tls: CertificateFiles | null };
    readonly rtmp: { readonly tls: CertificateFiles | null };
  },
  now: number,
): readonly CertificateReport[] {
  const all = [config.http.tls, config.rtmp.tls].filter((files) => files !== null);
  const different = all.filter((files, at) => all.findIndex(({ section }) => section === files.section) === at);
  return different.map((files) => {
    const { own, faults } = readBoth(files);
    const warnings = own === null || faults.length > 0 ? [] : warningsOf(files, own, now);
    return { files, faults, warnings, own };
  });
}

/** Certificates to trust in addition to the public ones, PEM. `name`: the setting or flag that names the file. Throws
 *  `ConfigInvalid`. */
export function readAuthorities(path: string, name: string): string {
  const faults: string[] = [];
  const { text } = certificatesOf(path, name, faults);
  if (faults.length > 0) throw new ConfigInvalid(faults.join("\n"));
  return text;
}

/** A certificate in use, which follows its files. */
export interface KeptCertificate {
  /** Reads the files at once, whether they look changed or not; `files` may be others than before. */
  reload(files: CertificateFiles): void;
  stop(): void;
}

/** Applies a renewed certificate to new connections; one that cannot be used changes nothing. `files` are in use
 *  already. */
export function keepCertificate(
  files: CertificateFiles,
  use: (certificate: Certificate) => void,
  log: Logger,
): KeptCertificate {
  let watched = files;
  let used: Certificate | null = null;
  const renew = (onlyChanged: boolean): void => {
    const { section } = watched;
    try {
      const read = readCertificate(watched);
      if (onlyChanged && read.cert === used?.cert && read.key === used.key) return;
      use(read);
      used = read;
      log.info({ section }, "certificate reloaded");
    } catch (err) {
      log.error({ err, section }, "the new certificate cannot be used; the old one stays");
    }
  };
  try {
    used = readCertificate(files);
  } catch {
    // It has changed since it was put to use: the next reload reports it.
  }
  let unwatch = watchCertificate(files, () => renew(false));
  return {
    reload(next) {
      if (next.certFile !== watched.certFile || next.keyFile !== watched.keyFile) {
        unwatch();
        unwatch = watchCertificate(next, () => renew(false));
      }
      watched = next;
      renew(true);
    },
    stop: () => unwatch(),
  };
}

/** Calls `changed` whenever one of the files has changed; returns a function that stops it. */
export function watchCertificate(files: CertificateFiles, changed: () => void): () => void {
  const compare = (now: { readonly mtimeMs: number }, before: { readonly mtimeMs: number }): void => {
    if (now.mtimeMs !== before.mtimeMs && now.mtimeMs !== 0) changed();
  };
  const paths = [files.certFile, files.keyFile];
  for (const path of paths) watchFile(path, { interval: CHECK_EVERY_MS, persistent: false }, compare);
  return () => {
    for (const path of paths) unwatchFile(path, compare);
  };
}

function readBoth({ section, certFile, keyFile }: CertificateFiles) {
  const faults: string[] = [];
  const [certName, keyName] = [`${section}.tls_cert`, `${section}.tls_key`];
  const { text: cert, certificates } = certificatesOf(certFile, certName, faults);
  const { text: key, privateKey } = privateKeyOf(keyFile, keyName, faults);
  const [own = null] = certificates;
  if (own !== null && privateKey !== null && faults.length === 0) {
    if (own.checkPrivateKey(privateKey)) faults.push(...unusable(certName, keyName, { cert, key }));
    else if (certificates.some((of) => of.checkPrivateKey(privateKey))) {
      faults.push(`${certName}: in ${certFile} the certificate of the key must come first, before its authorities`);
    } else {
      faults.push(
        `${certName} and ${keyName} do not belong together: the key in ${keyFile} is not that of the certificate in ${certFile}`,
      );
    }
  }
  return { cert, key, own, faults };
}

function certificatesOf(path: string, name: string, faults: string[]) {
  const text = read(path, name, faults);
  const blocks = text?.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const certificates: X509Certificate[] = [];
  if (text !== null && blocks.length === 0) {
    const holdsKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text);
    faults.push(`${name}: ${path} holds no PEM certificate${holdsKey ? ", but a private key" : ""}`);
  }
  for (const [at, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch (cause) {
      faults.push(`${name}: certificate ${at + 1} in ${path} cannot be read: ${fileReasonOf(cause)}`);
    }
  }
  return { text: text ?? "", certificates };
}

function privateKeyOf(path: string, name: string, faults: string[]) {
  const text = read(path, name, faults);
  if (text === null) return { text: "", privateKey: null };
  try {
    if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
      const holdsCertificate = text.includes("-----BEGIN CERTIFICATE-----");
      faults.push(`${name}: ${path} holds no PEM private key${holdsCertificate ? ", but a certificate" : ""}`);
    } else if (/ENCRYPTED/.test(text)) {
      faults.push(`${name}: the key in ${path} has a passphrase; store the key without one`);
    } else {
      return { text, privateKey: createPrivateKey(text) };
    }
  } catch (cause) {
    faults.push(`${name}: the key in ${path} cannot be read: ${fileReasonOf(cause)}`);
  }
  return { text, privateKey: null };
}

/** Faults that only TLS itself reports, such as a key that is too short. */
function unusable(certName: string, keyName: string, { cert, key }: Certificate): readonly string[] {
  try {
    createSecureContext({ cert, key });
    return [];
  } catch (cause) {
    return [`${certName}, ${keyName}: cannot be used: ${fileReasonOf(cause)}`];
  }
}

function warningsOf({ section, certFile }: CertificateFiles, own: X509Certificate, now: number): readonly string[] {
  const name = `${section}.tls_cert: the certificate in ${certFile}`;
  if (Date.parse(own.validTo) <= now) return [`${name} has expired (${own.validTo}): clients refuse it, renew it`];
  if (Date.parse(own.validFrom) > now) return [`${name} is not valid before ${own.validFrom}: clients refuse it`];
  return [];
}

function read(path: string, name: string, faults: string[]): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    faults.push(`${name}: cannot read ${path}: ${fileReasonOf(cause)}`);
    return null;
  }
}

function fileReasonOf(cause: unknown): string {
  const words: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file",
    EACCES: "this user may not read it",
    EISDIR: "it is a folder",
  };
  return words[(cause as { readonly code?: string }).code ?? ""] ?? reasonOf(cause);
}
