// A connection to a port inside a box, as a stream: what the gateway forwards requests over. The port of the proxy is refused on
// this side too, because the agent is not believed.
import { Duplex } from 'node:stream';
import { type Nothing, parseNothing, PROXY_PORT } from '../../box-agent/protocol/messages.ts';
import { AgentError } from './agent-error.ts';
import type { BoxAgents } from './box-agents.ts';
import type { RunningCall } from './running-call.ts';

/** Rejects with an AgentError: `failed` with ECONNREFUSED where nothing listens. */
export async function connectToBox(agents: BoxAgents, box: string, port: number): Promise<Duplex> {
  if (port === PROXY_PORT) throw new AgentError('failed', 'PORT_REFUSED');
  const channel = await agents.channel(box);
  const connection = new BoxConnection();
  const call = channel.call(
    { method: 'connect', port },
    {
      parseHead: parseNothing,
      parseResult: parseNothing,
      onData: (_, bytes) => connection.receive(bytes),
      onEnd: (error) => connection.receiveEnd(error),
    },
  );
  await call.head;
  // It broke with its head.
  if (connection.destroyed) await call.result;
  connection.attach(call);
  return connection;
}

class BoxConnection extends Duplex {
  #call: RunningCall<Nothing, Nothing> | undefined;
  /** Received and not yet granted: it is granted when the consumer wants more. */
  #ungranted = 0;
  #isEnded = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  attach(call: RunningCall<Nothing, Nothing>): void {
    this.#call = call;
    // Bytes may have come with the head.
    this.#grant();
  }

  receive(bytes: Buffer): void {
    if (this.destroyed) return;
    this.#ungranted += bytes.length;
    if (this.push(bytes)) this.#grant();
  }

  /** A connection that breaks must not look as if it had ended. */
  receiveEnd(error: AgentError | undefined): void {
    if (this.destroyed) return;
    // Nobody listens for errors before it was handed over.
    if (error !== undefined) this.destroy(this.#call === undefined ? undefined : error);
    else if (!this.#isEnded) this.push(null);
    this.#isEnded = true;
  }

  override _read(): void {
    this.#grant();
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    void this.#call?.write(bytes).then(() => done());
  }

  override _final(done: () => void): void {
    this.#call?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#call?.cancel();
    done(error);
  }

  #grant(): void {
    if (this.#call === undefined) return;
    const bytes = this.#ungranted;
    this.#ungranted = 0;
    if (bytes > 0) this.#call.grant(bytes);
  }
}
