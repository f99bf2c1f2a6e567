// The data plane on a loopback port, in front of agents that are processes without a box. Every box sees the files of the machine.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { createLog } from '../../../src/base/log.ts';
import { BoxAgents } from '../../../src/box-host/agents/box-agents.ts';
import { type CommandLimits, defaultCommandLimits } from '../../../src/box-host/agents/command-table.ts';
import { DataPlane } from '../../../src/box-host/data-plane/data-plane.ts';
import type { SendLimits } from '../../../src/box-host/data-plane/send-budget.ts';
import { spawnAgent } from '../../box-agent/spawned-agent.ts';

export type DataPlaneScene = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly agents: BoxAgents;
  readonly plane: DataPlane;
  /** The processes that were started. */
  readonly processes: readonly ChildProcess[];
  /** Lines of the log. */
  readonly log: readonly string[];
  /** Cuts every connection of clients, as the end of a platform does. */
  cut(): void;
};

export type SceneOptions = { readonly sendLimits?: SendLimits; readonly commandLimits?: CommandLimits };

export async function createDataPlaneScene({
  sendLimits,
  commandLimits = defaultCommandLimits,
}: SceneOptions = {}): Promise<DataPlaneScene> {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const processes: ChildProcess[] = [];
  const agents = new BoxAgents({
    log,
    commandLimits,
    open: async () => {
      const { child, stream } = spawnAgent();
      processes.push(child);
      stream.once('close', () => child.kill('SIGKILL'));
      return stream;
    },
  });
  const plane = new DataPlane(agents, log, sendLimits);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    plane.serve(socket, 'box');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    agents,
    plane,
    processes,
    log: lines,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      await plane.close(0);
      await agents.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(processes.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')));
    },
  };
}

export type SocketMessage = Readonly<Record<string, unknown>>;

/** A client of /execute/ws. */
export class ExecuteClient {
  readonly #socket: WebSocket;
  readonly messages: SocketMessage[] = [];
  readonly closed: Promise<number>;
  /** Status and Retry-After of a refused handshake. */
  readonly refused: Promise<readonly [status: number | undefined, retryAfter: string | undefined]>;

  constructor(scene: DataPlaneScene, first?: object) {
    this.#socket = new WebSocket(`${scene.url.replace('http', 'ws')}/execute/ws`);
    this.closed = new Promise((resolve) => {
      this.#socket.once('close', (code) => resolve(code));
    });
    this.refused = new Promise((resolve) => {
      this.#socket.once('unexpected-response', (request, response) => {
        resolve([response.statusCode, response.headers['retry-after']]);
        request.destroy();
      });
    });
    this.#socket.on('error', () => undefined);
    this.#socket.on('message', (data) => this.messages.push(JSON.parse(String(data))));
    if (first !== undefined) this.#socket.once('open', () => this.send(first));
  }

  get opened(): Promise<unknown> {
    return once(this.#socket, 'open');
  }

  send(message: object | string): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  sendBytes(bytes: Buffer): void {
    this.#socket.send(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Without a word. */
  break(): void {
    this.#socket.terminate();
  }

  textOf(type: 'stdout' | 'stderr'): string {
    return this.messages
      .filter((message) => message['type'] === type)
      .map((message) => String(message['data']))
      .join('');
  }

  of(type: string): readonly SocketMessage[] {
    return this.messages.filter((message) => message['type'] === type);
  }
}
