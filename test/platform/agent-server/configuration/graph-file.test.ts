// The configuration file: what it may hold, and which key is named when it may not.
import { describe, expect, it } from 'vitest';
import { toCorsSettings } from '../../../../src/platform/agent-server/configuration/cors-document.ts';
import { parseGraphFile } from '../../../../src/platform/agent-server/configuration/graph-file.ts';

const graphs = { agent: './agent.ts:graph' };
const issueOf = (document: unknown): string => {
  const parsed = parseGraphFile(document, 26);
  if (parsed.ok) throw new Error('it was accepted');
  return parsed.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('\n');
};

it('a file has graphs, with or without a description, and its settings', () => {
  const parsed = parseGraphFile(
    {
      graphs: { ...graphs, other: { path: 'b.mjs:make', description: 'Explains things' } },
      env: { A: 1, B: true, C: 'text' },
      node_version: '24',
      auth: { path: './auth.ts:auth', disable_studio_auth: true, cache: {} },
      http: { app: './app.js:app', mount_prefix: '/agents/', disable_runs: true, error_format: 'text' },
      dockerfile_lines: [],
    },
    26,
  );
  expect(parsed).toMatchObject({
    ok: true,
    value: {
      env: { A: '1', B: 'true', C: 'text' },
      auth: { source: { file: './auth.ts', name: 'auth' }, disableStudio: true },
      app: { file: './app.js', name: 'app' },
      http: { mount_prefix: '/agents', disable_runs: true, error_format: 'text' },
      warnings: ['auth.cache has no effect: the authentication handler is asked for each request'],
    },
  });
  if (parsed.ok) expect(parsed.value.graphs.get('other')).toMatchObject({ description: 'Explains things' });
});

it.each([
  [{}, 'graphs: Field required'],
  [{ graphs: {} }, 'graphs: At least one graph is required'],
  [{ graphs: { a: './a.ts' } }, 'graphs.a: must be file:export, for example ./src/agent.ts:graph'],
  [{ graphs: { a: { path: './a.py:graph' } } }, 'graphs.a.path: Python is not supported by this version'],
  [{ graphs, auht: {} }, 'auht: Unknown key: remove it, or correct its spelling'],
  [{ graphs, http: { disable_run: true } }, 'http.disable_run: Unknown key'],
  [{ graphs, http: { mount_prefix: 'agents' } }, 'http.mount_prefix: must be a path such as /agents'],
  [{ graphs, checkpointer: { ttl: {} } }, 'checkpointer: This version does not support'],
  [
    { graphs, webhooks: {}, ui: {} },
    'webhooks: This version does not support webhooks: remove the key\nui: ',
  ],
  [{ graphs, node_version: 28 }, 'node_version: asks for Node 28, and this server runs Node 26'],
  [{ graphs, env: ['A B'] }, 'env'],
  [
    { graphs, http: { cors: { allow_origins: ['*'], allow_credentials: true } } },
    'http.cors: allow_credentials needs a list of origins',
  ],
  [
    { graphs, http: { cors: { allow_origin_regex: '(' } } },
    'http.cors.allow_origin_regex: must be a regular expression',
  ],
])('%j is refused', (document, message) => expect(issueOf(document)).toContain(message));

describe('the pages that may call the server', () => {
  const cors = (document: object | undefined, variable?: readonly string[], isOpenOnLoopback = false) => {
    const parsed = parseGraphFile({ graphs, http: { cors: document } }, 26);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    return toCorsSettings(parsed.value.http.cors, variable, isOpenOnLoopback);
  };

  it('are all without a list, and those of the variable where the file has none', () => {
    expect(cors(undefined).origins).toEqual(['*']);
    expect(cors({}, ['https://a.test']).origins).toEqual(['https://a.test']);
    expect(cors({ allow_origins: ['https://b.test'] }, ['https://a.test']).origins).toEqual([
      'https://b.test',
    ]);
  });

  it('are those that a pattern matches as a whole', () => {
    const { origins, originPattern } = cors({ allow_origin_regex: 'https://.*\\.a\\.test' });
    expect(origins).toEqual([]);
    expect(originPattern?.test('https://x.a.test')).toBe(true);
    expect(originPattern?.test('https://x.a.test.attacker.test')).toBe(false);
  });

  it('are those of this machine without authentication on loopback, unless others are named', () => {
    const { origins, originPattern } = cors(undefined, undefined, true);
    expect(origins).toEqual([]);
    expect(originPattern?.test('http://localhost:3000')).toBe(true);
    expect(originPattern?.test('http://localhost.a.test')).toBe(false);
    expect(cors({}, ['*'], true)).toMatchObject({ origins: ['*'], originPattern: undefined });
    expect(cors({ allow_origins: ['*'] }, undefined, true).origins).toEqual(['*']);
  });

  it('are never all with credentials', () => expect(cors({ allow_credentials: true }).origins).toEqual([]));
});
