// The colours that all pages have in common, each in light and in dark. A page adds those of its own.

const PALETTE = {
  page: ["#f5f6f8", "#0e1014"],
  side: ["#eceef2", "#13161b"],
  card: ["#ffffff", "#171a20"],
  ink: ["#15181e", "#eceef2"],
  soft: ["#555d6b", "#a4adba"],
  line: ["#dde1e7", "#2a2f39"],
  edge: ["#818a98", "#6f7988"],
  field: ["#ffffff", "#0f1217"],
  accent: ["#2b4fcf", "#93aaff"],
  "accent-strong": ["#203fae", "#b3c3ff"],
  "accent-soft": ["#e5eaff", "#222c4d"],
  "on-accent": ["#ffffff", "#0c1438"],
} as const;

const sheet = (value: (light: string, dark: string) => string): string => {
  const lines = Object.entries(PALETTE).map(([name, [light, dark]]) => `  --${name}: ${value(light, dark)};\n`);
  return `:root {\n${lines.join("")}}\n`;
};

/** As custom properties that follow the element's colour scheme. */
export const PALETTE_STYLE = sheet((light, dark) => `light-dark(${light}, ${dark})`);

/** The same for browsers without `light-dark()`: as the system is set. */
export const PALETTE_BY_MEDIA = `${sheet((light) => light)}@media (prefers-color-scheme: dark) {\n${sheet((_, dark) => dark)}}\n`;
