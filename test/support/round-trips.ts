// The requests that this process sends to its stores: one for each time that it waits for an answer.
import { MessagePort } from "node:worker_threads";
import type { QueryConfig } from "pg";
import type { Request } from "../../ts/store/libsql-messages.ts";
import { ServerClient } from "../../ts/store/postgres/connecting.ts";
import { ON_POSTGRES } from "./stores.ts";

/** Records the text of each until `stop`; of statements sent together, that of all. */
export function recordRoundTrips(): { readonly sent: readonly string[]; stop(): void } {
  const sent: string[] = [];
  const stop = ON_POSTGRES ? recordClients(sent) : recordPorts(sent);
  return { sent, stop };
}

function recordPorts(sent: string[]): () => void {
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message: Partial<Request> | undefined, ...rest) {
    if (message?.kind === "statement") sent.push(message.sql ?? "");
    else if (message?.kind === "batch") sent.push((message.statements ?? []).map(({ sql }) => sql).join("; "));
    else if (message?.kind !== undefined) sent.push(message.kind);
    postMessage.call(this, message, ...(rest as []));
  };
  return () => {
    MessagePort.prototype.postMessage = postMessage;
  };
}

function recordClients(sent: string[]): () => void {
  const { ask, askTogether } = ServerClient.prototype;
  ServerClient.prototype.ask = async function (statement) {
    sent.push(statement.text);
    return (await ask.call(this, statement)) as never;
  };
  ServerClient.prototype.askTogether = async function (statements: readonly QueryConfig[]) {
    sent.push(statements.map(({ text }) => text).join("; "));
    return (await askTogether.call(this, statements)) as never;
  };
  return () => {
    Object.assign(ServerClient.prototype, { ask, askTogether });
  };
}
