// The WebSocket of the v5 client, in memory: tests say when it opens, what the service replies, and when it is lost.
export class FakeSocket {
  static readonly OPEN = 1;
  /** All that were made since `forget`, oldest first. */
  static readonly made: FakeSocket[] = [];
  readyState = 0;
  readonly calls: { readonly type: string; readonly message_id: number }[] = [];
  onopen = () => {};
  onclose = () => {};
  onmessage: (event: { readonly data: string }) => void = () => {};

  static forget(): void {
    FakeSocket.made.length = 0;
  }

  constructor() {
    FakeSocket.made.push(this);
  }

  open(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  send(text: string): void {
    this.calls.push(JSON.parse(text));
  }

  /** Replies to the latest call. */
  reply(fields: object): void {
    this.onmessage({ data: JSON.stringify({ message_id: this.calls.at(-1)?.message_id, ...fields }) });
  }

  /** The closing handshake takes its time: `lose` ends it. */
  close(): void {
    this.readyState = 2;
  }

  lose(): void {
    this.readyState = 3;
    this.onclose();
  }
}
