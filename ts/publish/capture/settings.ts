// The settings of captures, included in settings.ts.
import { integer, optionalText } from "../../setting-kinds.ts";

export const CAPTURE_SETTINGS = {
  "capture.directory": {
    ...optionalText,
    env: "HEADGATE_CAPTURE_DIRECTORY",
    fallback: null,
    meaning: "directory for the files of `headgate capture`; if unset, nothing can be captured",
  },
  "capture.max_mb": {
    ...integer(1, 4_096, "megabytes from 1 to 4096"),
    env: "HEADGATE_CAPTURE_MAX_MB",
    fallback: 256,
    meaning: "largest size of a capture, MB",
  },
  "capture.max_s": {
    ...integer(1, 86_400, "seconds from 1 to 86400"),
    env: "HEADGATE_CAPTURE_MAX_S",
    fallback: 600,
    meaning: "longest duration of a capture, seconds",
  },
} as const;

/** What may be captured, and where the files go. */
export interface CaptureConfig {
  /** null: captures are off. */
  readonly directory: string | null;
  readonly maxMb: number;
  readonly maxS: number;
}
