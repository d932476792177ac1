// The frame around every page: navigation, the signed-in person, the command palette's button.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Icon } from "../parts/icons.tsx";
import { addCommands, type Command } from "./commands.ts";
import type { PageEntry } from "./page-entry.ts";
import { openPalette, PALETTE_KEYS, Palette } from "./palette.tsx";
import { type Me, mayDo, ROLE_WORDS } from "./permissions.ts";
import { signOut } from "./session.ts";
import { setTheme, type Theme, theme } from "./theme.ts";

interface FrameProps {
  readonly pages: readonly PageEntry[];
  readonly me: Me;
  readonly children: ComponentChildren;
}

export function Frame({ pages, me, children }: FrameProps) {
  const { path, route } = useLocation();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  // Closes the menu when the page changes.
  useEffect(() => setMenuOpen(false), [path]);
  useEffect(() => addCommands(() => frameCommands(pages, me, route)), [pages, me, route]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isMenuOpen) return;
    setMenuOpen(false);
    menu.current?.focus();
  };
  return (
    <div class="frame" data-menu={isMenuOpen ? "open" : "closed"}>
      <a class="skip" href="#page">
        Skip to content
      </a>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the menu from anywhere in it */}
      <div class="side" onKeyDown={onKeyDown}>
        <div class="side-head">
          <a class="brand" href="/dashboard/overview">
            <Mark />
            <span>
              Headgate
              {me.organisation.name !== "Headgate" && <small>{me.organisation.name}</small>}
            </span>
          </a>
          <button
            type="button"
            class="quiet icon-only menu-button"
            ref={menu}
            aria-expanded={isMenuOpen}
            aria-controls="navigation"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name={isMenuOpen ? "close" : "menu"} />
            <span class="unseen">{isMenuOpen ? "Close the menu" : "Open the menu"}</span>
          </button>
        </div>
        <div class="side-body" id="navigation">
          <button type="button" class="find" onClick={openPalette}>
            <Icon name="search" />
            <span>Find …</span>
            <kbd>{PALETTE_KEYS}</kbd>
          </button>
          <Navigation pages={pages} me={me} path={path} />
          <Person me={me} />
        </div>
      </div>
      <main id="page" tabIndex={-1}>
        {children}
      </main>
      <Palette />
    </div>
  );
}

function Navigation({ pages, me, path }: Omit<FrameProps, "children"> & { readonly path: string }) {
  const shown = pages.filter(({ group, needs }) => group !== undefined && (needs === undefined || mayDo(me, needs)));
  const groups = [...new Set(shown.map(({ group }) => group))];
  const marked = markedPath(pages, path);
  return (
    <nav aria-label="Dashboard">
      {groups.map((group) => (
        <section key={group} aria-label={group}>
          <h2>{group}</h2>
          <ul>
            {shown
              .filter((page) => page.group === group)
              .map((page) => (
                <li key={page.path}>
                  <a href={page.path} aria-current={page.path === marked ? "page" : undefined}>
                    <Icon name={page.icon} />
                    {page.title}
                  </a>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

/** The page of the navigation that the path belongs to. */
function markedPath(pages: readonly PageEntry[], path: string): string | undefined {
  const direct = pages.find(
    (page) => page.path === path || page.also?.some((also) => also.replace(/\/$/, "") === path),
  );
  if (direct !== undefined) return direct.path;
  return pages.find(({ under }) => under !== undefined && path.startsWith(`${under}/`))?.under;
}

function Person({ me }: { readonly me: Me }) {
  return (
    <div class="person">
      <a class="person-name" href="/dashboard/account">
        <span class="avatar" aria-hidden="true">
          {(me.email ?? "?").charAt(0).toUpperCase()}
        </span>
        <span>
          {me.email}
          <small>{ROLE_WORDS[me.role].name}</small>
        </span>
      </a>
      <button type="button" class="quiet icon-only" onClick={() => void signOut()}>
        <Icon name="leave" />
        <span class="unseen">Sign out</span>
      </button>
    </div>
  );
}

/** The logo of Headgate: a gate that lets one line through. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <circle cx="16" cy="16" r="6" />
    </svg>
  );
}

function frameCommands(pages: readonly PageEntry[], me: Me, route: (path: string) => void): readonly Command[] {
  const seen = pages.filter(({ path, needs }) => !path.includes(":") && (needs === undefined || mayDo(me, needs)));
  const opens = seen.map(({ path, title, icon, words = "" }) => ({
    id: path,
    title,
    icon,
    words,
    group: "Go to",
    run: () => route(path),
  }));
  const themes: readonly [Theme, string][] = [
    ["light", "Light colours"],
    ["dark", "Dark colours"],
    ["system", "Same colours as the system"],
  ];
  return [
    ...opens,
    ...themes
      .filter(([name]) => name !== theme.value)
      .map(([name, title]) => ({
        id: `theme-${name}`,
        title,
        icon: "theme" as const,
        words: "theme scheme mode",
        group: "Dashboard",
        run: () => setTheme(name),
      })),
    {
      id: "guide",
      title: "Guide",
      icon: "docs",
      words: "help documentation manual",
      group: "Dashboard",
      run: () => void open("/docs/guide", "_blank", "noopener"),
    },
    {
      id: "docs",
      title: "API documentation",
      icon: "docs",
      group: "Dashboard",
      run: () => void open("/docs", "_blank", "noopener"),
    },
    {
      id: "leave",
      title: "Sign out",
      icon: "leave",
      words: "logout log out",
      group: "Dashboard",
      run: () => void signOut(),
    },
  ];
}
