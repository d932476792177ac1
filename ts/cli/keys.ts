// `headgate keys …` and `headgate token …`: the credentials that customers' servers use.
import { ConfigInvalid } from "../errors.ts";
import { addApiKey, checkRoomForKey, listApiKeys, revokeApiKey, rotateApiKey } from "../organisation/api-keys.ts";
import { type Change, changed } from "../organisation/audit.ts";
import type { ApiKeyTable } from "../store/schema.ts";
import { openSecretBoxOf } from "../store/secret-box.ts";
import { loadTokenKeys } from "../token/keys.ts";
import { openRevocations, revokeStream, revokeToken, withoutArguments } from "../token/revocations.ts";
import { forgetTokenKey, rotateTokenKeys } from "../token/rotation.ts";
import { createTokens, type Tokens } from "../token/tokens.ts";
import { type AtStore, atStore, chosenOrganisation, operator, roleOf } from "./at-store.ts";
import type { GivenFlags } from "./flags.ts";
import { print, table, timeText } from "./output.ts";
import { unknownVerb, wanted } from "./words.ts";

export async function runKeys(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, id] = words;
  await atStore(flags, async (at) => {
    const { db, now } = at;
    const { id: organisationId, ...organisation } = await chosenOrganisation(at, flags);
    const noted = <T>(change: (result: T) => Change, work: (trx: AtStore["db"]) => Promise<T>) =>
      changed(db, operator({ id: organisationId }), now, change, work);
    const shown = ({ hash: _, ...row }: ApiKeyTable) => row;
    switch (verb) {
      case "ls": {
        const keys = await listApiKeys(db, organisationId, now);
        const rows = keys.map((key) => [
          key.id,
          key.role,
          key.label,
          timeText(key.expires_at),
          timeText(key.last_used_at),
        ]);
        return print(flags, keys.map(shown), table([["id", "role", "label", "expires", "last used"], ...rows]));
      }
      case "create": {
        const label = typeof flags.label === "string" ? flags.label : null;
        const settings = { organisationId, role: roleOf(flags), now, label };
        const { key, row } = await noted(
          ({ id: subject }: { readonly id: string; readonly key: string; readonly row: ApiKeyTable }) => ({
            action: "key.create",
            subject,
          }),
          async (trx) => {
            await checkRoomForKey(trx, organisationId, now);
            return await addApiKey(trx, settings);
          },
        );
        return print(flags, { ...shown(row), key }, [`API key of ${organisation.name}, shown only once: ${key}`]);
      }
      case "rotate": {
        const old = wanted(id, "the key's id");
        const { key, row, former } = await noted(
          () => ({ action: "key.rotate", subject: old }),
          (trx) => rotateApiKey(trx, organisationId, old, now),
        );
        const until = timeText(former.expires_at);
        return print(flags, { ...shown(row), key, former: shown(former) }, [
          `New API key, shown only once: ${key}`,
          `The former one is valid until ${until}.`,
        ]);
      }
      case "revoke": {
        const old = wanted(id, "the key's id");
        const row = await noted(
          () => ({ action: "key.revoke", subject: old }),
          (trx) => revokeApiKey(trx, organisationId, old, now),
        );
        return print(flags, shown(row), [`Key ${row.id} is revoked.`]);
      }
      default:
        throw unknownVerb("keys", verb, ["ls", "create", "rotate ID", "revoke ID"]);
    }
  });
}

export async function runToken(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, word] = words;
  await atStore(flags, async (at) => {
    const { db, now } = at;
    switch (verb) {
      case "create": {
        const tokens = await tokensOf(at);
        const streamname = wanted(word, "the stream name");
        const ingesturl = wanted(typeof flags.ingestUrl === "string" ? flags.ingestUrl : undefined, "--ingest-url");
        const token = await tokens.issue({ streamname, ingesturl, exp: null, nbf: null, org: null });
        return print(flags, { token }, [token]);
      }
      case "verify": {
        const claims = await (await tokensOf(at)).verify(wanted(word, "the token"));
        return print(flags, claims, [JSON.stringify(claims)]);
      }
      case "revoke": {
        if (typeof flags.stream === "string") {
          const streamname = withoutArguments(flags.stream); // copied from a token, it may have arguments
          await revokeStream(db, streamname, now);
          return print(flags, { streamname }, [`All existing tokens for ${streamname} are revoked.`]);
        }
        await revokeToken(db, wanted(word, "the token's jti, or --stream NAME,"), null, now);
        return print(flags, { jti: word }, [`Token ${word} is revoked.`]);
      }
      case "keys": {
        const keys = await db.selectFrom("token_key").selectAll().orderBy("created_at").execute();
        const shown = keys.map(({ private_key: _, public_jwk: __, ...key }) => key);
        return print(
          flags,
          shown,
          table([
            ["kid", "alg", "state", "created"],
            ...shown.map((key) => [key.kid, key.alg, key.state, timeText(key.created_at)]),
          ]),
        );
      }
      case "rotate":
        return await rotate(at, flags);
      case "forget": {
        const kid = wanted(word, "the kid of a retired key");
        if (!(await forgetTokenKey(db, kid)))
          throw new ConfigInvalid(`there is no retired or next key ${kid}: headgate token keys`);
        return print(flags, { kid }, [`Tokens signed with ${kid} are no longer valid.`]);
      }
      default:
        throw unknownVerb("token", verb, ["create NAME", "verify TOKEN", "revoke JTI", "keys", "rotate", "forget KID"]);
    }
  });
}

async function rotate({ db, config, now }: AtStore, flags: GivenFlags): Promise<void> {
  const when = flags.atOnce === true ? "at_once" : "when_shown";
  const { alg } = config.token;
  const done = await rotateTokenKeys(db, await openSecretBoxOf(db, config.dataDir), { alg, now, rotateDays: 0, when });
  if (done.outcome === "too_early") {
    const at = timeText(done.at);
    throw new ConfigInvalid(
      `the next key has not been published for long enough: try again after ${at}, or use --at-once`,
    );
  }
  print(flags, done, [
    `Web tokens are now signed with ${done.kid}.`,
    "A running service uses it within 5 s.",
    ...(when === "at_once"
      ? ["Other verifiers learn it when their cached key set expires, after up to 5 minutes."]
      : []),
  ]);
}

async function tokensOf({ db, config, now }: AtStore): Promise<Tokens> {
  const { alg, issuer } = config.token;
  const clock = { now: () => now };
  const { createLog } = await import("../log.ts");
  const keys = await loadTokenKeys(db, await openSecretBoxOf(db, config.dataDir), { alg, now, algorithm: "active" });
  const revocations = await openRevocations({ db, clock, log: await createLog(config.log, false) });
  revocations.stop(); // one command needs no later revocations
  return createTokens({ keys, issuer, clock, revocations });
}
