// FLV files joined one after the other, as an encoder sends them that changes its video during the publish:
// the second begins with its own decoder configuration, in the middle of the stream.
import { readFileSync, writeFileSync } from "node:fs";

const FILE_HEADER_BYTES = 13;
const TAG_HEADER_BYTES = 11;
/** PreviousTagSize. */
const TAG_END_BYTES = 4;
const AUDIO = 8;
const SCRIPT = 18;
/** Between the last tag of one file and the first of the next. */
const GAP_MS = 40;

/** Writes `first` and then `second` to `joined`, on one clock (FLV 10.1, E.4). */
export function joinFlv(first: string, second: string, joined: string): void {
  const begin = readFileSync(first);
  const newest = Math.max(...tagsOf(begin).map(timestampOf));
  const parts = [begin];
  for (const tag of tagsOf(readFileSync(second))) {
    if (tag[0] === SCRIPT || isSoundHeader(tag)) continue;
    const shifted = Buffer.from(tag);
    const timestamp = timestampOf(tag) + newest + GAP_MS;
    shifted.writeUIntBE(timestamp & 0xff_ffff, 4, 3);
    shifted.writeUInt8(timestamp >>> 24, 7);
    parts.push(shifted);
  }
  writeFileSync(joined, Buffer.concat(parts));
}

/** Each tag with its header and its PreviousTagSize; the last one may be cut off. */
export function tagsOf(file: Buffer): readonly Buffer[] {
  const tags: Buffer[] = [];
  for (let at = FILE_HEADER_BYTES; at + TAG_HEADER_BYTES < file.length; ) {
    const end = at + TAG_HEADER_BYTES + file.readUIntBE(at + 1, 3) + TAG_END_BYTES;
    tags.push(file.subarray(at, end));
    at = end;
  }
  return tags;
}

/** Timestamp of a tag, ms. */
export function timestampOf(tag: Buffer): number {
  return tag.readUIntBE(4, 3) + tag.readUInt8(7) * 2 ** 24;
}

/** AudioSpecificConfig, or its counterpart in Enhanced RTMP (SequenceStart, MultichannelConfig). The audio
 *  stays the same. */
function isSoundHeader(tag: Buffer): boolean {
  if (tag[0] !== AUDIO) return false;
  const [form = 0, kind = 0] = tag.subarray(TAG_HEADER_BYTES);
  if (form >> 4 === 10) return kind === 0;
  return form >> 4 === 9 && [0, 4].includes(form & 0xf);
}
