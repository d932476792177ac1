// The certificate files of HTTPS and RTMPS: read at the start, and again when they change.
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { ConfigInvalid } from "./errors.ts";

/** How often the files are looked at: renewals replace them by renaming, which a finer watch would miss, ms. */
const LOOK_EVERY_MS = 2_000;

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM, both. */
export interface Certificate {
  /** The own certificate first, then what leads to its authority. */
  readonly cert: string;
  readonly key: string;
}

/** Both files as text. Throws `ConfigInvalid` with the file that cannot be read; `section` is that of its setting. */
export function readCertificate(files: CertificateFiles, section: "http" | "rtmp"): Certificate {
  return { cert: read(files.certFile, `${section}.tls_cert`), key: read(files.keyFile, `${section}.tls_key`) };
}

/** Calls `changed` whenever one of the files has changed; returns what ends it. */
export function watchCertificate(files: CertificateFiles, changed: () => void): () => void {
  const look = (now: { readonly mtimeMs: number }, before: { readonly mtimeMs: number }): void => {
    if (now.mtimeMs !== before.mtimeMs && now.mtimeMs !== 0) changed();
  };
  const paths = [files.certFile, files.keyFile];
  for (const path of paths) watchFile(path, { interval: LOOK_EVERY_MS, persistent: false }, look);
  return () => {
    for (const path of paths) unwatchFile(path, look);
  };
}

function read(path: string, setting: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new ConfigInvalid(`${setting}: cannot read ${path}`, { cause });
  }
}
