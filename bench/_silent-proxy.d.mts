export interface SilentProxy {
  readonly port: number;
  /** Nothing passes any more, on existing connections and on new ones. */
  silence(): void;
  /** Nothing passes any more on the connections that exist now; new ones work. */
  forget(): void;
  close(): void;
}

export function startSilentProxy(socket: string, delayMs?: number): Promise<SilentProxy>;
