/** The page that shows a path of the repository, and its title. */
export interface Shown {
  readonly href: string;
  readonly title: string;
}

export function renderMarkdown(
  text: string,
  options: {
    readonly path: string;
    readonly shownAt: (path: string) => Shown | null;
    readonly drawingOf?: (diagram: string) => string;
  },
): { readonly html: string; readonly sections: readonly { readonly id: string; readonly title: string }[] };
export function slugs(): (title: string) => string;
