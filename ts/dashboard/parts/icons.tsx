// The dashboard's icons: strokes on a 24 × 24 grid, in the colour of the text beside them. They say nothing themselves.
const PATHS = {
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4.5 20a7.5 7.5 0 0 1 15 0",
  add: "M12 5v14M5 12h14",
  audit: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  deliveries: "M4 8l8 5 8-5M4 6h16v12H4z",
  docs: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  down: "M6 9l6 6 6-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  keys: "M14.5 13.5a4.5 4.5 0 1 0-4.2-2.8L4 17v3h3v-2h2v-2h2l1.2-1.2M15.5 8.5h.01",
  leave: "M14 5H5v14h9M10 12h10M17 9l3 3-3 3",
  live: "M12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4M7.8 16.2a6 6 0 0 1 0-8.4M16.2 7.8a6 6 0 0 1 0 8.4M5 19a10 10 0 0 1 0-14M19 5a10 10 0 0 1 0 14",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M12 5.5h.01M12 12h.01M12 18.5h.01",
  operator: "M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01",
  full: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  muted: "M4 9.5h3.5L12 5.5v13l-4.5-4H4zM16 10l5 5M21 10l-5 5",
  pause: "M8 5v14M16 5v14",
  people:
    "M9 11.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M2.5 19.5a6.5 6.5 0 0 1 13 0M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14a6.5 6.5 0 0 1 3.5 5.5",
  play: "M7 5l12 7-12 7z",
  replay: "M5 12a7 7 0 1 1 2 4.9M5 20v-4h4",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14M16 16l4.5 4.5",
  settings:
    "M4 7h10M18 7h2M4 17h2M10 17h10M16 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M8 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5",
  sound: "M4 9.5h3.5L12 5.5v13l-4.5-4H4zM15.5 9a4 4 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11",
  stop: "M6 6h12v12H6z",
  streams: "M4 6.5h11v11H4zM15 10.5l5-3v9l-5-3",
  tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
  theme: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16M12 4v16",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  usage: "M5 20V12M12 20V5M19 20v-5M3 20h18",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  webhook: "M9 15a4 4 0 1 1-4-4M12 4a4 4 0 0 1 3.5 6L18 15M12 8l-4 7M15 15h7M18 19a4 4 0 0 1-3-1.4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
