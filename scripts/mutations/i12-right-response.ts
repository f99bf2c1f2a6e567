// Ways to send a client the response to another request.
import type { Mutation } from './mutation.ts';

export const rightResponse: readonly Mutation[] = [
  {
    invariant: 'I12',
    name: 'surplus bytes after a response are ignored',
    file: 'src/proxy/h1/exchange.ts',
    text: 'if (upstream && rest === 0 && ',
    replacement: 'if (upstream && ',
    breaks: 'a connection on which the host sent too much serves the next request',
  },
  {
    invariant: 'I12',
    name: 'the next request is sent at once',
    file: 'src/proxy/h1/client-connection.ts',
    text: 'if (this.#input.length > 0) setImmediate(() => this.#readNext());',
    replacement: 'if (this.#input.length > 0) this.#readNext();',
    breaks: 'bytes that arrived with one response are read as the next response',
  },
  {
    invariant: 'I12',
    name: 'data on idle connections is ignored',
    file: 'src/proxy/upstream/connection-pool.ts',
    text: 'if (!this.#owner) this.socket.destroy();',
    replacement: '',
    breaks: 'half of an unsolicited response is skipped, and the other half is the response to a request',
  },
  {
    invariant: 'I12',
    name: 'an aborted exchange returns its connection to the pool',
    file: 'src/proxy/h1/exchange.ts',
    text: 'this.#upstream?.discard();',
    replacement: 'if (this.#upstream) this.#context.upstream.give(this.#upstream);',
    breaks: 'the response to a client that disconnected goes to the next client',
  },
  {
    invariant: 'I12',
    name: 'responses to HEAD have bodies',
    file: 'src/http1/framing.ts',
    text: " || requestMethod === 'HEAD'",
    replacement: '',
    breaks: 'the next response is read as a body',
  },
  {
    invariant: 'I12',
    name: 'a truncated response is followed by the next one',
    file: 'src/proxy/h1/exchange.ts',
    text: 'if (this.#verdict) closeIncomplete(this.#connection.socket);',
    replacement: 'if (this.#verdict) this.#connection.finishExchange(true);',
    breaks: 'the next response completes the truncated one',
  },
];
