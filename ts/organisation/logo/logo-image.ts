// The logo that a customer uploads: a PNG, checked and encoded anew, so that what browsers get is ours. Metadata is left
// out. pngjs: no dependencies, and it inflates no more than the picture's size; another format would need a second decoder.
import { createHash } from "node:crypto";
import { PNG } from "pngjs";
import { InvalidValue } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";

/** Largest file that is taken, bytes. */
export const UPLOAD_LIMIT_BYTES = 100_000;
/** Widest and highest logo, pixels: decoding it takes a few milliseconds of the one thread. */
export const SIDE_LIMIT = 512;
/** Largest file that is kept, bytes: as we write it, a picture with few colours takes more than it did. */
export const SIZE_LIMIT_BYTES = 300_000;

/** The signature, and the beginning of the first chunk (PNG 5.2, 11.2.1). */
const BEGINNING = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
/** Length of signature and first chunk. */
const HEADER_BYTES = 33;

export interface Logo {
  readonly png: Buffer;
  /** SHA-256 of `png`, lower-case hex. */
  readonly sha256: string;
  readonly width: number;
  readonly height: number;
}

/** Throws `InvalidValue` for what is no PNG, or too large in any respect. */
export function readLogo(file: Buffer): Logo {
  if (file.length > UPLOAD_LIMIT_BYTES) throw invalid(`must not be larger than ${UPLOAD_LIMIT_BYTES} bytes`);
  if (file.length < HEADER_BYTES || !file.subarray(0, BEGINNING.length).equals(BEGINNING)) {
    throw invalid("must be a PNG file, base64");
  }
  // Before anything is decoded.
  const [width, height, interlace] = [file.readUInt32BE(16), file.readUInt32BE(20), file[28]];
  if (width === 0 || height === 0 || width > SIDE_LIMIT || height > SIDE_LIMIT) {
    throw invalid(`must be at most ${SIDE_LIMIT} pixels wide and high, but is ${width} × ${height}`);
  }
  // Its size when inflated would not be bounded.
  if (interlace !== 0) throw invalid("must not be interlaced");
  const png = encodedAnew(file);
  if (png.length > SIZE_LIMIT_BYTES) throw invalid("has too many details: make it smaller");
  return { png, sha256: createHash("sha256").update(png).digest("hex"), width, height };
}

function encodedAnew(file: Buffer): Buffer {
  try {
    const { width, height, data } = PNG.sync.read(file);
    const picture = new PNG({ width, height });
    data.copy(picture.data);
    return PNG.sync.write(picture);
  } catch (error) {
    throw invalid(`is not a valid PNG file: ${reasonOf(error)}`);
  }
}

const invalid = (reason: string) => new InvalidValue("png", reason);
