// Ways to send the injected field never, twice or with a wrong value.
import { type Mutation, bothVersions } from './mutation.ts';

export const exactlyOnce: readonly Mutation[] = [
  {
    invariant: 'I4',
    name: "the agent's own field is not removed",
    versions: bothVersions,
    file: 'src/proxy/gate/inject.ts',
    text: ' || injection.isReplaced(bytes, start, end)',
    replacement: '',
    breaks: "the origin receives the agent's field beside the injected one",
  },
  {
    invariant: 'I4',
    name: 'only one of several equal fields is removed',
    versions: bothVersions,
    file: 'src/proxy/gate/inject.ts',
    text: 'injection.isReplaced(bytes, start, end)) drop[i] = 1;',
    replacement: 'injection.isReplaced(bytes, start, end)) { drop[i] = 1; break; }',
    breaks: 'a second field of the same name survives',
  },
  {
    invariant: 'I4',
    name: 'an underscore is not treated as a hyphen',
    versions: bothVersions,
    file: 'src/http1/field-name.ts',
    text: 'return byte === UNDERSCORE_BYTE ? HYPHEN_BYTE : byte;',
    replacement: 'return byte;',
    breaks: 'X_Api_Key reaches origins that read it as X-Api-Key',
  },
  {
    invariant: 'I4',
    name: 'Connection is relayed',
    file: 'src/http1/connection-fields.ts',
    text: 'drop[i] = 1;\n    if (id === Field.connection) {',
    replacement: 'drop[i] = id === Field.connection ? 0 : 1;\n    if (id === Field.connection) {',
    breaks: 'the next hop strips the injected field that the agent nominated',
  },
  {
    invariant: 'I4',
    name: 'request trailers are relayed',
    file: 'src/http1/chunk-walker.ts',
    text: 'if (!isCanonical) this.#replaceHead(bytes, past, LAST_CHUNK, emit);',
    replacement: '',
    breaks: 'an origin that merges trailers receives a second field',
  },
  {
    invariant: 'I4',
    name: 'the injected field is written twice',
    file: 'src/proxy/h1/outgoing-head.ts',
    text: 'own === NO_LINES ? [injection.lines] : [...own, injection.lines]',
    replacement: '[...own, injection.lines, injection.lines]',
    breaks: 'the origin receives the field twice',
  },
];
