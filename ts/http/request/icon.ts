// The icon in the tab of pages that the gateway itself writes: the mark of the dashboard and of the broadcast page
// (ts/broadcast/icon.svg), inside the page; and at /favicon.ico for what has no page around it.

export const ICON_SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#2b4fcf"/>' +
  '<circle cx="16" cy="16" r="6" fill="#fff"/></svg>';

export const ICON_LINK = `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON_SVG)}">`;
