// What the runner asks of an agent server over its pinned socket: whether it is ready, to drain, and what still runs in it. The program
// behind the socket may be hostile: each call has a deadline, and a bound of what is read.
import { request } from 'node:http';
import { parseWith, z } from '../../base/schema.ts';
import { AGENT_FIELDS, type AgentStatus, DRAIN_PATH, STATUS_PATH } from '../agent-server/contract.ts';
import type { ServedInstance } from './target-table.ts';

/** They reject with an Error, and do nothing more then. */
export type InstanceControl = {
  /** Also of its database. False: it does not respond, or not so. */
  isReady(): Promise<boolean>;
  drain(): Promise<void>;
  status(): Promise<AgentStatus>;
};

export type CreateInstanceControl = (
  instance: Pick<ServedInstance, 'socketPath' | 'gatewayToken'>,
) => InstanceControl;

/** Of the whole exchange. */
const DEADLINE_MS = 5_000;
const MAX_BYTES = 16_384;

export const createInstanceControl: CreateInstanceControl = (instance) => {
  const ask = (method: string, path: string): Promise<Response> => exchange({ ...instance, method, path });
  return {
    async isReady() {
      try {
        return (await ask('GET', `${STATUS_PATH}?check_db=1`)).status === 200;
      } catch {
        return false;
      }
    },
    async drain() {
      const { status } = await ask('POST', DRAIN_PATH);
      if (status !== 202) throw new Error(`the agent server does not drain: it responds with ${status}`);
    },
    async status() {
      const { status, text } = await ask('GET', STATUS_PATH);
      const parsed = parseWith(statusShape, status === 200 ? toDocument(text) : undefined);
      if (!parsed.ok) throw new Error(`the agent server does not say what runs: it responds with ${status}`);
      return parsed.value;
    },
  };
};

const count = z.int().min(0);
const statusShape = z.object({
  draining: z.boolean(),
  requests: count,
  streams: count,
  runs: count,
}) satisfies z.ZodType<AgentStatus>;

type Response = { readonly status: number; readonly text: string };
type Asked = Parameters<CreateInstanceControl>[0] & { readonly method: string; readonly path: string };

/** Without a connection that is kept: the socket may be that of another process next time. */
function exchange({ socketPath, gatewayToken, method, path }: Asked): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const headers = { [AGENT_FIELDS.control]: gatewayToken };
  const giveUp = (reason: string): void => {
    reject(new Error(`the agent server ${reason}`));
    sent.destroy();
  };
  const sent = request({ socketPath, method, path, headers, agent: false }, (response) => {
    let text = '';
    response.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
      if (text.length > MAX_BYTES) giveUp('responds with too much');
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    response.on('error', reject);
  });
  const late = setTimeout(() => giveUp('does not respond'), DEADLINE_MS);
  sent.on('error', reject).on('close', () => {
    clearTimeout(late);
    reject(new Error('the agent server has closed the connection'));
  });
  sent.end();
  return promise;
}

function toDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
