// The head of every page: its heading, which gets the focus after navigation, the title of the tab, and actions for the
// whole page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface PageProps {
  readonly title: string;
  /** Shown before the title: a link to the list that the page belongs to. */
  readonly back?: { readonly href: string; readonly title: string };
  /** A sentence below the title. */
  readonly lead?: ComponentChildren;
  /** Buttons on the right of the title. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** False after the first page, which must not take the focus. */
let isFirst = true;

export function Page({ title, back, lead, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Headgate`;
  }, [title]);
  // After the command palette has closed, if it led here: while it is open, nothing behind it can have the focus.
  useEffect(() => {
    if (!isFirst) heading.current?.focus({ preventScroll: true });
    isFirst = false;
  }, []);
  return (
    <>
      <header class="page-head">
        <div>
          {back && (
            <p class="back">
              <a href={back.href}>← {back.title}</a>
            </p>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

interface SectionProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
  /** A section without the card's border: for a table, which has its own. */
  readonly plain?: boolean;
  readonly id?: string;
}

/** A part of a page with a heading of its own. */
export function Section({ title, lead, actions, children, plain = false, id }: SectionProps) {
  return (
    <section class={plain ? "section" : "section card"} id={id} aria-label={title}>
      <header class="section-head">
        <div>
          <h2>{title}</h2>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
