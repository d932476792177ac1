export interface AfternoonService {
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  readonly http: string;
  readonly rtmp: string;
  drain(): void | Promise<void>;
}
export const ADA: string;
export function haveAnAfternoon(options: {
  readonly service: AfternoonService;
  readonly customer: {
    answer(next: { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }): void;
  };
  readonly password: string;
  readonly upstreamPort: number;
  readonly live: number;
}): Promise<{ stop(): void }>;
