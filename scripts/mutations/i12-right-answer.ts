// Ways to give somebody the answer of another.
import type { Mutation } from './mutation.ts';

export const rightResponse: readonly Mutation[] = [
  {
    invariant: 'I12',
    name: 'bytes behind an answer are forgotten',
    file: 'src/proxy/h1/exchange.ts',
    text: 'if (upstream && rest === 0 && ',
    replacement: 'if (upstream && ',
    breaks: 'a connection whose host said too much serves the next request',
  },
  {
    invariant: 'I12',
    name: 'the next request leaves at once',
    file: 'src/proxy/h1/client-connection.ts',
    text: 'if (this.#input.length > 0) setImmediate(() => this.#readNext());',
    replacement: 'if (this.#input.length > 0) this.#readNext();',
    breaks: 'what came together with one answer is read as the next one',
  },
  {
    invariant: 'I12',
    name: 'idle connections may speak',
    file: 'src/proxy/upstream/connection-pool.ts',
    text: 'if (!this.#owner) this.socket.destroy();',
    replacement: '',
    breaks: 'half of an unasked answer is skipped, the other half answers a request',
  },
  {
    invariant: 'I12',
    name: 'an abandoned exchange gives its connection back',
    file: 'src/proxy/h1/exchange.ts',
    text: 'this.#upstream?.discard();',
    replacement: 'if (this.#upstream) this.#context.upstream.give(this.#upstream);',
    breaks: 'the answer to a client that left goes to the next one',
  },
  {
    invariant: 'I12',
    name: 'answers to HEAD have bodies',
    file: 'src/http1/framing.ts',
    text: " || requestMethod === 'HEAD'",
    replacement: '',
    breaks: 'the next answer is swallowed as a body',
  },
  {
    invariant: 'I12',
    name: 'a cut answer is followed by the next',
    file: 'src/proxy/h1/exchange.ts',
    text: 'if (this.#verdict) cut(this.#connection.socket);',
    replacement: 'if (this.#verdict) this.#connection.finishExchange(true);',
    breaks: 'the next answer completes the one that was cut',
  },
];
