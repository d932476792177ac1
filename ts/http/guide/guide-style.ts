// The style sheet of the guide: the colours of the dashboard and of the broadcast page, light or dark as the system is
// set.

import { PALETTE_STYLE } from "../../text/palette.ts";

export const GUIDE_STYLE = `
${PALETTE_STYLE}:root {
  color-scheme: light dark;
  --code: light-dark(#eef0f4, #171a20);
  --mono: ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
a { color: var(--accent); text-underline-offset: 0.2em; text-decoration-thickness: 0.06em; }
a:focus-visible, pre:focus-visible, .table:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--card); padding: 0.5rem 1rem; z-index: 2; }
header { position: sticky; top: 0; z-index: 1; display: flex; gap: 1rem; align-items: center; justify-content: space-between; padding: 0.6rem 1.25rem; background: var(--card); border-bottom: 1px solid var(--line); }
header a { text-decoration: none; }
header nav { display: flex; gap: 1.1rem; font-size: 0.9375rem; white-space: nowrap; }
.home { font-weight: 650; color: var(--ink); white-space: nowrap; }
.home span { font-weight: 400; color: var(--soft); }
.columns { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 76rem; margin: 0 auto; }
main { grid-column: 2; grid-row: 1; padding: 1.5rem 2.5rem 4rem; max-width: 54rem; min-width: 0; overflow-wrap: break-word; }
#pages { grid-column: 1; grid-row: 1; position: sticky; top: 3rem; align-self: start; max-height: calc(100vh - 3rem); overflow-y: auto; padding: 1.25rem 1rem 2rem 1.25rem; font-size: 0.9375rem; line-height: 1.4; }
#pages h2 { font-size: 0.8125rem; font-weight: 600; margin: 1.1rem 0 0.3rem; color: var(--soft); }
#pages ul { list-style: none; margin: 0; padding: 0; }
#pages a { display: block; padding: 0.25rem 0.6rem; border-radius: 6px; color: var(--ink); text-decoration: none; }
#pages a:hover { background: var(--side); }
#pages a[aria-current] { background: var(--accent-soft); color: var(--accent); font-weight: 600; }
#pages ul ul { margin: 0.2rem 0 0.5rem 0.6rem; border-left: 1px solid var(--line); }
#pages ul ul a { padding: 0.15rem 0.7rem; color: var(--soft); font-size: 0.875rem; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 2rem; letter-spacing: -0.015em; margin: 0.4rem 0 1rem; }
h2 { font-size: 1.4rem; margin: 2.4rem 0 0.7rem; }
h3 { font-size: 1.1rem; margin: 1.8rem 0 0.5rem; }
.anchor { color: var(--soft); text-decoration: none; font-weight: 400; opacity: 0; }
:is(h2, h3, h4):hover .anchor, .anchor:focus-visible { opacity: 1; }
p, ul, ol { margin: 0 0 0.9rem; }
main :is(ul, ol) { padding-left: 1.4rem; }
main li { margin-bottom: 0.35rem; }
code { font-family: var(--mono); font-size: 0.875em; background: var(--code); border-radius: 4px; padding: 0.1em 0.3em; overflow-wrap: anywhere; }
pre { margin: 0 0 1.1rem; padding: 0.85rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto; font-size: 0.875rem; line-height: 1.5; }
pre code { background: none; padding: 0; font-size: 1em; overflow-wrap: normal; }
.table { overflow-x: auto; margin: 0 0 1.2rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 0.9375rem; line-height: 1.45; }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 0.8rem; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { font-weight: 600; color: var(--soft); font-size: 0.875rem; }
td code { white-space: normal; }
td { min-width: 7rem; }
blockquote { margin: 0 0 1rem; padding: 0.2rem 1rem; border-left: 3px solid var(--accent); color: var(--soft); }
hr { border: 0; border-top: 1px solid var(--line); margin: 2rem 0; }
.steps { display: flex; justify-content: space-between; gap: 1rem; margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); }
.steps a[rel=next] { margin-left: auto; text-align: right; }
.steps a[rel=next]::after { content: " →"; }
.steps a[rel=prev]::before { content: "← "; }
.block { position: relative; }
.block > pre { padding-right: 5rem; }
.block > button { position: absolute; top: 0.4rem; right: 0.4rem; font: inherit; font-size: 0.8125rem; padding: 0.15rem 0.6rem; border: 1px solid var(--line); border-radius: 6px; background: var(--page); color: var(--ink); cursor: pointer; }
.block > button:focus-visible, .find :is(input, button):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.find { display: flex; flex: 0 1 18rem; gap: 0.4rem; margin-left: auto; min-width: 0; margin-bottom: 0; }
.find input { flex: 1; min-width: 0; font: inherit; font-size: 0.9375rem; padding: 0.2rem 0.6rem; border: 1px solid var(--soft); border-radius: 6px; background: var(--page); color: var(--ink); }
.find button { font: inherit; font-size: 0.9375rem; padding: 0.2rem 0.7rem; border: 1px solid var(--line); border-radius: 6px; background: var(--page); color: var(--ink); cursor: pointer; }
.found { list-style: none; padding: 0 !important; }
.found li { margin-bottom: 1.1rem; }
.found p { margin: 0.1rem 0 0; color: var(--soft); font-size: 0.9375rem; }
mark { background: light-dark(#ffe9a8, #5a4a12); color: var(--ink); border-radius: 2px; }
.diagram { --bg: var(--page); --fg: var(--ink); --_text: var(--ink); --_text-sec: var(--soft); --_text-muted: var(--soft); --_text-faint: var(--soft); --_line: var(--soft); --_arrow: var(--ink); --_node-fill: var(--card); --_node-stroke: var(--soft); --_group-fill: var(--page); --_group-hdr: var(--side); --_inner-stroke: var(--line); --_key-badge: var(--line); margin: 0 0 1.2rem; overflow-x: auto; }
.diagram svg { display: block; max-width: 100%; height: auto; }
.diagram text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.diagram details { font-size: 0.875rem; color: var(--soft); }
.to-pages { display: none; }
@media (max-width: 56rem) {
  .columns { display: block; }
  main { padding: 1rem 1.1rem 2rem; }
  header { position: static; flex-wrap: wrap; gap: 0.5rem 1rem; }
  .find { order: 1; flex: 1 1 100%; }
  .block > pre { padding-right: 1rem; }
  .block > button { position: static; display: block; margin: -0.9rem 0 1.1rem auto; }
  .diagram svg { max-width: none; }
  #pages { position: static; max-height: none; padding: 0.5rem 1.1rem 3rem; border-top: 1px solid var(--line); background: var(--side); }
  #pages a { padding-block: 0.45rem; }
  .to-pages { display: inline; }
  h1 { font-size: 1.65rem; }
  header { padding-inline: 1.1rem; }
}
@media (max-width: 30rem) {
  header { flex-wrap: wrap; gap: 0.2rem 1rem; }
  header nav { gap: 0.9rem; }
  html { scroll-padding-top: 6rem; }
}
@media print {
  header, #pages, .anchor, .steps { display: none; }
  .columns { display: block; }
}
`;
