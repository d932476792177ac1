// A STUN binding request with ICE credentials (RFC 8489, RFC 8445 section 7): tests whether the media side answers.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createSocket } from "node:dgram";
import { crc32 } from "node:zlib";

const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const COOKIE = 0x2112a442;
const USERNAME = 0x0006;
const MESSAGE_INTEGRITY = 0x0008;
const PRIORITY = 0x0024;
const FINGERPRINT = 0x8028;
const ICE_CONTROLLING = 0x802a;
const HEADER_BYTES = 20;
const TRIES = 4;
const TRY_MS = 250;

/**
 * Whether a valid success response arrives for these credentials. False after a second of silence.
 * @param {{ address: string, port: number }} candidate
 * @param {{ localUfrag: string, remoteUfrag: string, remotePwd: string }} ice
 */
export async function answersBinding(candidate, { localUfrag, remoteUfrag, remotePwd }) {
  const socket = createSocket(candidate.address.includes(":") ? "udp6" : "udp4");
  const transaction = randomBytes(12);
  const message = request(transaction, `${remoteUfrag}:${localUfrag}`, remotePwd);
  try {
    return await new Promise((resolve, reject) => {
      let tries = 0;
      const attempt = () => {
        if (tries === TRIES) return resolve(false);
        tries += 1;
        socket.send(message, candidate.port, candidate.address);
        timer = setTimeout(attempt, TRY_MS);
      };
      let timer = setTimeout(attempt, 0);
      socket.on("error", reject);
      socket.on("message", (answer) => {
        if (!isSuccess(answer, transaction, remotePwd)) return;
        clearTimeout(timer);
        resolve(true);
      });
    });
  } finally {
    socket.close();
  }
}

/** UDP candidates of component 1 in an answer or fragment, in their order. */
export function udpCandidates(sdp) {
  return [...sdp.matchAll(/^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) typ (\S+)/gim)].map(([, address, port, type]) => ({
    address,
    port: Number(port),
    type,
  }));
}

function request(transaction, username, pwd) {
  const attributes = [
    attribute(USERNAME, Buffer.from(username)),
    attribute(PRIORITY, Buffer.from([0x6e, 0x7f, 0x1e, 0xff])),
    attribute(ICE_CONTROLLING, randomBytes(8)),
  ];
  const body = () => Buffer.concat(attributes);
  const header = (bytes) => {
    const head = Buffer.alloc(HEADER_BYTES);
    head.writeUInt16BE(BINDING_REQUEST, 0);
    head.writeUInt16BE(bytes, 2);
    head.writeUInt32BE(COOKIE, 4);
    transaction.copy(head, 8);
    return head;
  };
  // Both checks cover a header whose length already includes them (RFC 8489 sections 14.5 and 14.7).
  const covered = Buffer.concat([header(body().length + 24), body()]);
  attributes.push(attribute(MESSAGE_INTEGRITY, createHmac("sha1", pwd).update(covered).digest()));
  const printed = Buffer.concat([header(body().length + 8), body()]);
  const print = Buffer.alloc(4);
  print.writeUInt32BE((crc32(printed) ^ 0x5354554e) >>> 0);
  attributes.push(attribute(FINGERPRINT, print));
  return Buffer.concat([header(body().length), body()]);
}

function attribute(type, value) {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(value.length, 2);
  return Buffer.concat([head, value, Buffer.alloc((4 - (value.length % 4)) % 4)]);
}

/** Whether it is a success response to our transaction with a MESSAGE-INTEGRITY made with this password. */
function isSuccess(answer, transaction, pwd) {
  if (answer.length < HEADER_BYTES || answer.readUInt16BE(0) !== BINDING_SUCCESS) return false;
  if (!answer.subarray(8, HEADER_BYTES).equals(transaction)) return false;
  for (let at = HEADER_BYTES; at + 4 <= answer.length; ) {
    const bytes = answer.readUInt16BE(at + 2);
    if (answer.readUInt16BE(at) === MESSAGE_INTEGRITY && bytes === 20 && at + 24 <= answer.length) {
      const covered = Buffer.from(answer.subarray(0, at));
      covered.writeUInt16BE(at + 24 - HEADER_BYTES, 2);
      const expected = createHmac("sha1", pwd).update(covered).digest();
      return timingSafeEqual(expected, answer.subarray(at + 4, at + 24));
    }
    at += 4 + bytes + ((4 - (bytes % 4)) % 4);
  }
  return false;
}
