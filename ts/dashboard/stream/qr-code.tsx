// A QR code for a phone's camera: dark on white in both colour schemes, as scanners require.

import { useMemo } from "preact/hooks";
import encodeQr from "qr";

/** White modules around it (ISO/IEC 18004 section 9.1 requires four). */
const QUIET_MODULES = 4;

interface QrCodeProps {
  readonly text: string;
  /** The target, for people who cannot see the code. */
  readonly label: string;
}

/** Renders nothing for a text that is too long for a QR code. */
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
