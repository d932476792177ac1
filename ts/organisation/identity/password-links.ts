// Links with which a person sets a new password without the former one: made by an administrator, valid for a day, and for
// one use. Nothing is stored: a link holds, encrypted, which password it replaces.
import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import type { PersonTable, Schema } from "../../store/schema.ts";
import type { SecretBox } from "../../store/secret-box.ts";

/** How long a link is valid, ms. */
const LINK_LIMIT_MS = 86_400_000;
const PURPOSE = "password link";

export interface PasswordLinks {
  /** The token of a new link. */
  tokenFor(person: PersonTable): { readonly token: string; readonly expiresAt: number };
  /** The person of a token; null when it is made up, expired, or their password has changed since. */
  personOf(token: string): Promise<PersonTable | null>;
}

/** What a token holds. */
interface Link {
  readonly person: string;
  /** Digest of the hash of the password that is replaced: the next password makes every link useless. */
  readonly replaces: string;
  /** Epoch ms. */
  readonly expiresAt: number;
}

export function createPasswordLinks(deps: {
  readonly db: Kysely<Schema>;
  readonly secretBox: SecretBox;
  readonly clock: { now(): number };
}): PasswordLinks {
  const { db, secretBox, clock } = deps;

  return {
    tokenFor({ id, password_hash }) {
      const expiresAt = clock.now() + LINK_LIMIT_MS;
      const link: Link = { person: id, replaces: digestOf(password_hash), expiresAt };
      return { token: secretBox.seal(JSON.stringify(link), PURPOSE), expiresAt };
    },
    async personOf(token) {
      const link = opened(token);
      if (link === null || clock.now() >= link.expiresAt) return null;
      const person = await db.selectFrom("person").selectAll().where("id", "=", link.person).executeTakeFirst();
      return person !== undefined && digestOf(person.password_hash) === link.replaces ? person : null;
    },
  };

  function opened(token: string): Link | null {
    try {
      return JSON.parse(secretBox.open(token, PURPOSE)) as Link;
    } catch {
      return null;
    }
  }
}

function digestOf(passwordHash: string): string {
  return createHash("sha256").update(passwordHash).digest("base64url");
}
