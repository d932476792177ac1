// Who did something, in words: as the middle of a sentence.

/** As the API says it. */
interface Who {
  readonly kind: "key" | "user" | "operator";
  readonly id: string | null;
  /** E-mail address of the person, or label of the key. */
  readonly name: string | null;
}

export function whoWords({ kind, id, name }: Who): string {
  if (kind === "operator") return "the operator";
  if (kind === "key") return name === null ? `the key hg_${id}_…` : `the key “${name}”`;
  return name ?? "a person who was removed since";
}
