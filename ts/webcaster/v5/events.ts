// The events of a RtcUser, as in the v5 API.

/** State of a running broadcast. */
export type BroadcastStatus = "signalling" | "connected" | "broadcasting" | "reconnecting";

/** An error by its number; `text` and `message` are the same. */
export interface RtcUserFault {
  readonly code: number;
  readonly text: string;
  readonly message: string;
}

/** The `data` of each event. */
export interface RtcUserEvents {
  readonly SignInSuccess: { readonly userId: string };
  readonly SignInError: RtcUserFault;
  readonly StartBroadcastSuccess: null;
  readonly StartBroadcastError: RtcUserFault;
  readonly BroadcastStatus: { readonly status: BroadcastStatus };
  readonly BroadcastError: RtcUserFault;
  readonly StopBroadcastSuccess: null;
  readonly StopBroadcastError: RtcUserFault;
}

export type RtcUserEventName = keyof RtcUserEvents;

export interface RtcUserEvent<Name extends RtcUserEventName> {
  readonly name: Name;
  readonly data: RtcUserEvents[Name];
}

type Handler<Name extends RtcUserEventName> = (event: RtcUserEvent<Name>) => void;

export class Emitter {
  readonly #handlers = new Map<RtcUserEventName, Set<(event: never) => void>>();

  on<Name extends RtcUserEventName>(name: Name, handler: Handler<Name>): void {
    const handlers = this.#handlers.get(name) ?? new Set();
    this.#handlers.set(name, handlers.add(handler));
  }

  off<Name extends RtcUserEventName>(name: Name, handler: Handler<Name>): void {
    this.#handlers.get(name)?.delete(handler);
  }

  emit<Name extends RtcUserEventName>(name: Name, data: RtcUserEvents[Name]): void {
    const event = { name, data };
    for (const handler of [...(this.#handlers.get(name) ?? [])]) handler(event as never);
  }
}
