// Requests of the agent benchmark: kept-alive connections to one server, threads and runs. Every response but a 200 is an error.
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';

export type Connections = {
  request(method: 'GET' | 'POST', path: string, body?: object): Promise<IncomingMessage>;
  close(): void;
};

export type RunWanted = {
  readonly assistant: string;
  readonly topic: string;
  readonly mode: string;
  readonly onDisconnect?: 'cancel';
};

export function createConnections(url: string): Connections {
  const agent = new Agent({ keepAlive: true });
  const open = new Set<IncomingMessage>();
  return {
    async request(method, path, body) {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers =
        text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
      const sent = request(`${url}${path}`, { agent, method, headers });
      sent.end(text);
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      // One that is cut by us, or by the server at its end.
      sent.on('error', () => undefined);
      if (response.statusCode !== 200)
        throw new Error(`${method} ${path}: ${response.statusCode} ${await readBody(response)}`);
      open.add(response);
      response.once('close', () => open.delete(response));
      return response;
    },
    close() {
      for (const response of open) response.destroy();
      agent.destroy();
    },
  };
}

export async function readBody(response: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

export async function postJson(connections: Connections, path: string, body: object): Promise<string> {
  return readBody(await connections.request('POST', path, body));
}

export async function createThread(connections: Connections): Promise<string> {
  const { thread_id: id } = JSON.parse(await postJson(connections, '/threads', {}));
  return String(id);
}

/** The stream of its events. */
export function startRun(
  connections: Connections,
  threadId: string,
  { assistant, topic, mode, onDisconnect }: RunWanted,
): Promise<IncomingMessage> {
  return connections.request('POST', `/threads/${threadId}/runs/stream`, {
    ...{ assistant_id: assistant, input: { topic }, stream_mode: [mode], multitask_strategy: 'enqueue' },
    ...(onDisconnect === undefined ? {} : { on_disconnect: onDisconnect }),
  });
}
