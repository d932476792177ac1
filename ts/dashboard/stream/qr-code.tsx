// A QR code for the camera of a phone: dark on white in both colour schemes, as readers want it.

import { useMemo } from "preact/hooks";
import encodeQr from "qr";

/** Modules of white around it (ISO/IEC 18004 section 9.1 asks for four). */
const QUIET_MODULES = 4;

interface QrCodeProps {
  readonly text: string;
  /** What it leads to, for those who do not see it. */
  readonly label: string;
}

/** Nothing for a text that is too long for one. */
export function QrCode({ text, label }: QrCodeProps) {
  const code = useMemo(() => pathOf(text), [text]);
  if (code === null) return null;
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${code.size} ${code.size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <rect width={code.size} height={code.size} fill="#fff" />
      <path d={code.path} fill="#000" />
    </svg>
  );
}

function pathOf(text: string): { readonly size: number; readonly path: string } | null {
  let rows: readonly (readonly boolean[])[];
  try {
    rows = encodeQr(text, "raw", { ecc: "low", border: QUIET_MODULES });
  } catch {
    return null;
  }
  const path: string[] = [];
  for (const [y, row] of rows.entries()) {
    for (let x = 0; x < row.length; x += 1) {
      if (!row[x]) continue;
      const start = x;
      while (row[x + 1]) x += 1;
      path.push(`M${start} ${y}h${x - start + 1}v1h-${x - start + 1}z`);
    }
  }
  return { size: rows.length, path: path.join("") };
}
