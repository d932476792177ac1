// A stream in a list of something else: a link with its name, and its title below that.
import { addressOf } from "../shell/addresses.ts";

interface NamedStreamProps {
  readonly stream: { readonly id: string; readonly name: string; readonly title: string | null };
}

export function NamedStream({ stream: { id, name, title } }: NamedStreamProps) {
  return (
    <span class="second">
      <a class="mono nowrap" href={addressOf("streams", id)}>
        {name}
      </a>
      {title !== null && (
        <small class="second">
          <bdi>{title}</bdi>
        </small>
      )}
    </span>
  );
}
