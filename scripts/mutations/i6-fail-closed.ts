// Ways to go on where something failed.
import type { Mutation } from './mutation.ts';

export const failClosed: readonly Mutation[] = [
  {
    invariant: 'I6',
    name: 'a failed callback injects nothing and passes',
    file: 'src/proxy/inject.ts',
    text: "if (!outcome.ok) return refuse('callback_failed', outcome.reason);",
    replacement: 'if (!outcome.ok) return passages.no_match;',
    breaks: 'the request leaves without its credential',
  },
  {
    invariant: 'I6',
    name: 'failures are remembered',
    file: 'src/callback/resolver.ts',
    text: 'if (!reply.ok) return reply;',
    replacement: 'if (!reply.ok) cache.set(key, reply, 60_000);\n    if (!reply.ok) return reply;',
    breaks: 'one failure refuses requests for a minute',
  },
  {
    invariant: 'I6',
    name: 'bad headers are passed over',
    file: 'src/callback/reply.ts',
    text: 'if (headerNameFault(name) !== undefined) return `the name of header ${position} may not be injected`;',
    replacement: 'if (headerNameFault(name) !== undefined) continue;',
    breaks: 'a half-understood answer is injected in part',
  },
  {
    invariant: 'I6',
    name: 'a missing secret is nothing',
    file: 'src/policy/compile.ts',
    text: 'return `The workspace secret ${toLocKey(part.secret)} does not exist; create it first`;',
    replacement: 'continue;',
    breaks: 'a rule is in force without its credential',
  },
  {
    invariant: 'I6',
    name: 'exchanges without a record',
    file: 'src/proxy/exchange-start.ts',
    text: "if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);",
    replacement: '',
    breaks: 'credentials are used while nothing can be recorded',
  },
  {
    invariant: 'I6',
    name: 'tunnels without a record',
    file: 'src/proxy/connect.ts',
    text: "if (context.recorder.isBlocked) return connection.refuse(refuse('record_sink_blocked'), details);",
    replacement: '',
    breaks: 'tunnels open while nothing can be recorded',
  },
  {
    invariant: 'I6',
    name: 'a bug is thrown on',
    file: 'src/proxy/client-connection.ts',
    text: 'else if (this.#running) this.#running.onBug(error);',
    replacement: 'else if (this.#running) throw error;',
    breaks: 'one failing decision ends the process for everybody',
  },
];
