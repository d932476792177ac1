// The events of a RtcUser, as in the v5 API.

/** State of a running broadcast. */
export type BroadcastStatus = "signalling" | "connected" | "broadcasting" | "reconnecting";

/** An error by its number; `text` and `message` are the same. */
export interface RtcUserFault {
  readonly code: number;
  readonly text: string;
  readonly message: string;
  /** Why the service ended the broadcast, if it said so. */
  readonly ended?: EndedBroadcast;
}

/** An end by the service. */
export interface EndedBroadcast {
  /** Such as `ended_by_person` (docs/whip.md). */
  readonly code: string;
  readonly title: string;
  /** Who or what ended it, such as `person`, `api`, `customer` or `lock`. */
  readonly ended_by: string;
  readonly reason: string;
  /** Whether somebody ended it on purpose: a page must not start it again by itself. */
  readonly final: boolean;
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
    for (const handler of [...(this.#handlers.get(name) ?? [])]) {
      try {
        handler(event as never);
      } catch (error) {
        // Reported like any error of the page; it ends no broadcast, and keeps no other handler from the event.
        reportError(error);
      }
    }
  }
}
