// Colours of the style sheet for drawing on a canvas, which does not support custom properties.

/** For the colour scheme currently shown: `colourOf("--accent")` returns `rgb(43, 79, 207)`. */
export function colourOf(property: `--${string}`): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  probe.hidden = true;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Calls `act` whenever the scheme changes; the returned function stops that. */
export function onSchemeChange(act: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", act);
  const chosen = new MutationObserver(act);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", act);
    chosen.disconnect();
  };
}
