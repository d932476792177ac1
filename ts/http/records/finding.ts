// What is wrong with a running publish, as callers see it.
import { type Finding, SEVERITIES } from "../../publish/monitoring/health.ts";
import { FINDING_CODES } from "../../publish/monitoring/health-words.ts";
import { Time, z } from "../openapi.ts";

export const FindingRecord = z
  .object({
    code: z.enum(FINDING_CODES),
    severity: z.enum(SEVERITIES).openapi({
      description:
        "note: worth knowing; attention: viewers may get broken media soon, or some do; bad: they get broken media or none",
    }),
    since: Time,
    words: z.string().openapi({ example: "Keyframes are 5.0 s apart" }),
    advice: z.string().openapi({
      description: "What viewers notice, and what to do",
      example: "New viewers wait that long for video. Set the keyframe interval to 2 seconds.",
    }),
  })
  .openapi("SessionFinding");
export type FindingRecord = z.infer<typeof FindingRecord>;

/** The worst first. */
export function findingRecords(findings: readonly Finding[]): FindingRecord[] {
  return findings.map(({ code, severity, since, words, advice }) => ({
    code,
    severity,
    since: new Date(since).toISOString(),
    words,
    advice,
  }));
}
