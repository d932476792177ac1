// `headgate token …`: web tokens, their records, and the keys that sign them. Works on the store, whether the service runs
// or not.
import { ConfigInvalid } from "../../errors.ts";
import { openSecretBoxOf } from "../../store/secret-box.ts";
import { loadTokenKeys } from "../../token/keys.ts";
import { openRevocations, revokeStream, revokeToken, withoutArguments } from "../../token/revocations.ts";
import { forgetTokenKey, rotateTokenKeys } from "../../token/rotation.ts";
import { noteRevoked, recordToken } from "../../token/token-records.ts";
import { createTokens, type IssuedToken, type Tokens } from "../../token/tokens.ts";
import { type AtStore, atStore } from "../at-store.ts";
import { TOKEN_VERBS } from "../command-flags.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table, timeText } from "../output.ts";
import { unknownVerb, wanted } from "../words.ts";
import { printTokens } from "./list.ts";

export async function runToken(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, word] = words;
  await atStore(flags, async (at) => {
    const { db, now } = at;
    switch (verb) {
      case "ls":
        return await printTokens(at, flags);
      case "create": {
        const tokens = await tokensOf(at);
        const streamname = wanted(word, "the stream name");
        const ingesturl = wanted(typeof flags.ingestUrl === "string" ? flags.ingestUrl : undefined, "--ingest-url");
        const issued = await tokens.issue({ streamname, ingesturl, exp: null, nbf: null, org: null });
        await record(at, issued);
        const { token } = issued;
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
        const jti = wanted(word, "the token's jti, or --stream NAME,");
        await revokeToken(db, jti, null, now);
        await noteRevoked(db, null, jti, now);
        return print(flags, { jti }, [`Token ${jti} is revoked.`]);
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
        throw unknownVerb("token", verb, TOKEN_VERBS);
    }
  });
}

/** In the list of the organisation whose stream it is for, if there is one. */
async function record({ db, now }: AtStore, issued: IssuedToken): Promise<void> {
  const [hash = ""] = issued.streamname.split("-", 1);
  const organisation = await db.selectFrom("organisation").select("id").where("hash", "=", hash).executeTakeFirst();
  if (organisation === undefined) return;
  const maker = { organisationId: organisation.id, who: { kind: "operator", id: null } } as const;
  await recordToken(db, issued, "broadcast", maker, now);
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
  const { createLog } = await import("../../log.ts");
  const keys = await loadTokenKeys(db, await openSecretBoxOf(db, config.dataDir), { alg, now, algorithm: "active" });
  const revocations = await openRevocations({ db, clock, log: await createLog(config.log, false) });
  revocations.stop(); // one command needs no later revocations
  return createTokens({ keys, issuer, clock, revocations });
}
