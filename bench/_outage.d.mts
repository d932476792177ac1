export function outage(
  organisations: number,
  events: number,
): Promise<{
  alone: number[];
  beside: number[];
  denied: number;
  left: number;
  seconds: number;
  best: number;
  worst: number;
}>;
