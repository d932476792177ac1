// The dashboard's icons: strokes on a 24 × 24 grid, in the colour of the text beside them. They are hidden from screen
// readers.
import { type IconName, PATHS } from "./icon-paths.ts";

export type { IconName };

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
