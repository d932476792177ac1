// The capacity settings of a node, and of one organisation on it, included in settings.ts.
import { integer, perSecond } from "../setting-kinds.ts";

const percent = integer(0, 100, "percent from 0 to 100 (0: not looked at)");

export const CAPACITY_SETTINGS = {
  "limits.load_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_LOAD_PERCENT",
    fallback: 90,
    meaning: "of the time, which a media worker may be busy before new publishes are refused; 0: not looked at",
  },
  "limits.memory_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_MEMORY_PERCENT",
    fallback: 90,
    meaning: "of the memory there is, from which on new publishes are refused; 0: not looked at",
  },
  "limits.memory_mb": {
    ...integer(0, 1_000_000_000, "megabytes from 0 to 1000000000 (0: as the system has it)"),
    env: "HEADGATE_LIMITS_MEMORY_MB",
    fallback: 0,
    meaning: "memory there is, MB; 0: what the control group allows, or else the machine has",
  },
  "limits.descriptors_percent": {
    ...percent,
    env: "HEADGATE_LIMITS_DESCRIPTORS_PERCENT",
    fallback: 85,
    meaning: "of the file descriptors, from which on new publishes are refused; 0: not looked at",
  },
  "limits.organisation_streams": {
    ...perSecond,
    env: "HEADGATE_LIMITS_ORGANISATION_STREAMS",
    fallback: 0,
    meaning: "streams that one organisation may have live at a time; an organisation may have a limit of its own",
  },
  "limits.organisation_ingest_kbps": {
    ...integer(0, 1_000_000_000, "kbit/s from 0 to 1000000000 (0: no limit)"),
    env: "HEADGATE_LIMITS_ORGANISATION_INGEST_KBPS",
    fallback: 0,
    meaning: "what the live streams of one organisation may send together, kbit/s, before it may begin no more",
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
