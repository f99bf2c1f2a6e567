// Connections of the platform to ports inside boxes: a bounded number for each box, and why there is none in words of ours.
import type { Duplex } from 'node:stream';
import { AgentError } from '../agents/agent-error.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import { connectToBox } from '../agents/box-connection.ts';
import { BoxError } from '../box-error.ts';

/** Of a box. Its agent runs 64 calls: the services of a box must leave some for commands and files. */
const MAX_OPEN = 48;

export class BoxPorts {
  readonly #agents: BoxAgents;
  /** Connections that are open or being opened, by box. */
  readonly #open: Map<string, number> = new Map();

  constructor(agents: BoxAgents) {
    this.#agents = agents;
  }

  /** To a port of the loopback address of a running box. Rejects with a BoxError. */
  async connect(box: string, port: number): Promise<Duplex> {
    const open = this.#open.get(box) ?? 0;
    if (open >= MAX_OPEN)
      throw new BoxError(
        'no_capacity',
        `The sandbox has ${MAX_OPEN} connections to its services: close some`,
      );
    this.#open.set(box, open + 1);
    try {
      const connection = await connectToBox(this.#agents, box, port);
      if (connection.destroyed) this.#release(box);
      else connection.once('close', () => this.#release(box));
      return connection;
    } catch (error) {
      this.#release(box);
      throw error instanceof AgentError ? toBoxError(error) : error;
    }
  }

  #release(box: string): void {
    const left = (this.#open.get(box) ?? 1) - 1;
    if (left > 0) this.#open.set(box, left);
    else this.#open.delete(box);
  }
}

function toBoxError({ kind, code, message }: AgentError): BoxError {
  if (code === 'PORT_REFUSED') return new BoxError('port_refused', message);
  if (code === 'ECONNREFUSED') return new BoxError('not_listening', message);
  if (kind === 'busy') return new BoxError('no_capacity', message);
  return new BoxError(kind === 'stopped' ? 'failed' : 'agent_lost', message);
}
