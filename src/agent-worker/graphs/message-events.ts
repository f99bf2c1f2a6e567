// The mode `messages`: each message of a chat model as it grows, and each message of the state once. The library's own mode of
// that name is `messages-tuple` for clients.
import type { WorkerEvent } from '../protocol/messages.ts';
import { omit } from './chunk-event.ts';
import type { GraphEvent } from './library.ts';
import { writeJson } from './json-text.ts';

type MessageChunk = { readonly id?: string; concat(next: MessageChunk): MessageChunk };

export type MessageEvents = {
  /** A piece of a message, from a chat model. */
  addPiece(event: GraphEvent): readonly WorkerEvent[];
  /** The payload of a chunk of the graph, which may hold the messages of the state. */
  addPayload(payload: unknown): readonly WorkerEvent[];
};

export function createMessageEvents(hidden: ReadonlySet<string>): MessageEvents {
  const growing = new Map<string, MessageChunk>();
  const complete = new Set<string>();
  return {
    addPiece({ data, metadata }) {
      const piece = data.chunk as MessageChunk;
      if (piece.id === undefined || piece.id === '') return [];
      const before = growing.get(piece.id);
      const message = before === undefined ? piece : before.concat(piece);
      growing.set(piece.id, message);
      const partial = createEvent('messages/partial', [message]);
      if (before !== undefined) return [partial];
      return [
        createEvent('messages/metadata', { [piece.id]: { metadata: omit(metadata ?? {}, hidden) } }),
        partial,
      ];
    },
    addPayload(payload) {
      const messages = messagesOf(payload).filter(({ id }) => {
        if (id === undefined || id === '' || complete.has(id)) return false;
        complete.add(id);
        return true;
      });
      return messages.length === 0 ? [] : [createEvent('messages/complete', messages)];
    },
  };
}

function messagesOf(payload: unknown): readonly { readonly id?: string }[] {
  if (typeof payload !== 'object' || payload === null || !('messages' in payload)) return [];
  const found: unknown = payload.messages;
  const messages: unknown[] = Array.isArray(found) ? found : [found];
  return messages.filter((message) => typeof message === 'object' && message !== null);
}

function createEvent(event: string, data: unknown): WorkerEvent {
  return { event, data: writeJson(data, `The event \`${event}\``) };
}
