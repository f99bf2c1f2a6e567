// From a head to an exchange, or to the refusal of one that cannot be.
import type { RequestHead } from '../../http1/head-parser.ts';
import type { ClientConnection } from './client-connection.ts';
import { Exchange } from './exchange.ts';
import { isRefusal, refuse } from '../refusal.ts';
import { planRequest } from '../gate/request-plan.ts';

/** Starts an exchange for a head that is no CONNECT; `rest` is what came behind it. */
export function startExchange(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  const { context, tunnel, scheme } = connection.scope;
  const details = { method: head.method, ...(tunnel ? { authority: tunnel.text } : {}) };
  if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);
  const plan = planRequest(head, tunnel, scheme);
  if (isRefusal(plan)) return connection.refuse(plan, details);
  new Exchange(connection, plan).start(rest);
}
