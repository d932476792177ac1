// The capacity settings of a node, and of one organisation on it, included in settings.ts.
import { integer, perSecond } from "../setting-kinds.ts";

const percent = integer(0, 100, "percent from 0 to 100 (0: ignored)");

export const CAPACITY_SETTINGS = {
  "limits.load_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_LOAD_PERCENT",
    fallback: 90,
    meaning: "busy time of a media worker, %, at which new publishes are refused; 0: ignored",
  },
  "limits.memory_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_MEMORY_PERCENT",
    fallback: 90,
    meaning: "memory use, % of what is available, at which new publishes are refused; 0: ignored",
  },
  "limits.memory_mb": {
    ...integer(0, 1_000_000_000, "megabytes from 0 to 1000000000 (0: determined from the system)"),
    env: "HEADGATE_LIMITS_MEMORY_MB",
    fallback: 0,
    meaning: "available memory, MB; 0: the limit of the control group, or else the machine's memory",
  },
  "limits.descriptors_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_DESCRIPTORS_PERCENT",
    fallback: 85,
    meaning: "open file descriptors, % of the limit, at which new publishes are refused; 0: ignored",
  },
  "limits.organisation_streams": {
    ...perSecond,
    env: "HEADGATE_LIMITS_ORGANISATION_STREAMS",
    fallback: 0,
    meaning: "live streams of one organisation; an organisation can have a limit of its own",
  },
  "limits.organisation_ingest_kbps": {
    ...integer(0, 1_000_000_000, "kbit/s from 0 to 1000000000 (0: no limit)"),
    env: "HEADGATE_LIMITS_ORGANISATION_INGEST_KBPS",
    fallback: 0,
    meaning: "total bitrate of the live streams of one organisation, kbit/s, above which no further publish may begin",
  },
  "limits.organisation_setups_per_second": {
    ...perSecond,
    env: "HEADGATE_LIMITS_ORGANISATION_SETUPS_PER_SECOND",
    fallback: 0,
    meaning: "publish requests of one organisation; bursts of three seconds' worth",
  },
} as const;

type CapacityKey = keyof typeof CAPACITY_SETTINGS;

/** The values of the settings. */
export interface CapacityConfig {
  readonly loadPercent: number;
  readonly memoryPercent: number;
  /** Megabytes; 0: as the system reports. */
  readonly memoryMb: number;
  readonly descriptorsPercent: number;
  /** Limits of each organisation that has none of its own; 0 means no limit. */
  readonly organisation: OrganisationLimits;
}

/** 0 means no limit. */
export interface OrganisationLimits {
  /** Concurrent live streams. */
  readonly streams: number;
  /** Total of all its streams, kbit/s. */
  readonly ingestKbps: number;
  readonly setupsPerSecond: number;
}

export function capacityOf(value: (key: CapacityKey) => number): CapacityConfig {
  return {
    loadPercent: value("limits.load_percent"),
    memoryPercent: value("limits.memory_percent"),
    memoryMb: value("limits.memory_mb"),
    descriptorsPercent: value("limits.descriptors_percent"),
    organisation: {
      streams: value("limits.organisation_streams"),
      ingestKbps: value("limits.organisation_ingest_kbps"),
      setupsPerSecond: value("limits.organisation_setups_per_second"),
    },
  };
}
