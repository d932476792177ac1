// Passwords: stored as argon2id (RFC 9106), and only a few checked at a time because each check costs 19 MiB and some
// 20 ms.
import { hash, verify } from "@node-rs/argon2";
import { InvalidValue, TooManyRequests } from "../errors.ts";

/** Least length of a password, characters (NIST SP 800-63B section 5.1.1.2), and the longest that is hashed, bytes. */
const PASSWORD_LENGTH_AT_LEAST = 12;
const PASSWORD_LIMIT_BYTES = 256;
/** Concurrent checks in this process, and new passwords that are hashed; further ones are refused for `BUSY_RETRY_S`. An
 *  organisation that adds people cannot keep those of others from signing in. */
const CHECKS_LIMIT = 8;
const HASHES_LIMIT = 4;
const BUSY_RETRY_S = 2;
/** OWASP's first choice for argon2id (the library's default algorithm): 19 MiB, two passes, no parallelism. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

/** Instead of a hash, for people who sign in at an identity provider only: no password matches 32 zero bytes, and a check
 *  takes as long as any other. */
export const NO_PASSWORD = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}$${"A".repeat(22)}$${"A".repeat(43)}`;

const checks = { limit: CHECKS_LIMIT, underWay: 0 };
const hashes = { limit: HASHES_LIMIT, underWay: 0 };
/** Compared with when the name is unknown, so that both kinds of refusal take the same time. */
let nobody: Promise<string> | null = null;

/** Throws `InvalidValue` for a password that is too short or too long. */
export function checkPassword(parameter: string, password: string): void {
  if ([...password].length < PASSWORD_LENGTH_AT_LEAST) {
    throw new InvalidValue(parameter, `must have at least ${PASSWORD_LENGTH_AT_LEAST} characters`);
  }
  if (Buffer.byteLength(password) > PASSWORD_LIMIT_BYTES) {
    throw new InvalidValue(parameter, `must not be longer than ${PASSWORD_LIMIT_BYTES} bytes`);
  }
}

/** The PHC text of a password, which must have passed `checkPassword`. */
export async function hashPassword(password: string): Promise<string> {
  return await bounded(hashes, () => hash(password, COST));
}

/** Whether `password` matches `phc`; null matches nothing, but takes the same time. Rejects with `TooManyRequests`. */
export async function passwordHolds(phc: string | null, password: string): Promise<boolean> {
  if (Buffer.byteLength(password) > PASSWORD_LIMIT_BYTES) return false;
  return await bounded(checks, async () => {
    nobody ??= hash("nobody", COST);
    const holds = await verify(phc ?? (await nobody), password);
    return holds && phc !== null;
  });
}

async function bounded<T>(places: { readonly limit: number; underWay: number }, work: () => Promise<T>): Promise<T> {
  if (places.underWay >= places.limit) throw new TooManyRequests(BUSY_RETRY_S);
  places.underWay += 1;
  try {
    return await work();
  } finally {
    places.underWay -= 1;
  }
}
