// The door to @hono/node-server: node's requests to the web's, and answers back. It knows no route.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';

/** Stands for an answer that was written to node's response. */
export const alreadySent: Response = RESPONSE_ALREADY_SENT;

/** Has `answer` asked with a web request for each of node's; it should not reject. */
export function createRequestListener(
  response: (request: Request, incoming: IncomingMessage) => Promise<Response>,
): (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void> {
  return getRequestListener(async (request, { incoming }) => response(request, incoming as IncomingMessage), {
    overrideGlobalObjects: false,
    autoCleanupIncoming: false,
  });
}
