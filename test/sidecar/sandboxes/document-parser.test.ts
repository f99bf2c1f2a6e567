// Documents that are parsed at once or in a thread: the same result either way, the values of secrets included, and a
// thread that dies takes nothing with it.
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';
import { type ParsedProxyConfig, parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { opaqueValues } from '../../../src/sidecar/sandboxes/config-transfer.ts';
import {
  DocumentParser,
  type DocumentParserOptions,
} from '../../../src/sidecar/sandboxes/document-parser.ts';

const BROKEN = new URL('./broken-parser.ts', import.meta.url);
const MISSING = new URL('./missing-parser.ts', import.meta.url);

type Scene = { readonly parser: DocumentParser; readonly lines: readonly string[] };

function create(options: Omit<DocumentParserOptions, 'log'> = {}): Scene {
  const lines: string[] = [];
  const log = createLog('debug', { write: (line) => void lines.push(line) });
  // Threads do not outlive their test for long.
  return { parser: new DocumentParser({ log, idleMs: 500, ...options }), lines };
}

/** More than is parsed at once. */
const PAD = 'x'.repeat(5_000);
const hosts = Array.from({ length: 900 }, (_, i) => `h${i}.large.test`);
const opaque = (value?: string): object => ({ name: 'X-Key', type: 'opaque', value });
const plaintext = { name: 'X-B', type: 'plaintext', value: 'b' };

function large(header: object, name = 'first'): { readonly rules: readonly object[] } {
  return {
    rules: [
      { name, match_hosts: hosts, headers: [header], env_vars: { KEY: 'ä € \u{1f600}' } },
      { match_hosts: ['h1.large.test'], headers: [plaintext], description: 'No effect' },
    ],
  };
}

const options = { allowWildcards: [], stored: undefined };

function valid(parsed: ParsedProxyConfig | undefined): ProxyConfig {
  if (!parsed?.ok) throw new Error(JSON.stringify(parsed));
  return parsed.value;
}

/** The nice values of the threads of this process, the highest last. */
function niceValues(): readonly number[] {
  const threads = readdirSync('/proc/self/task').map((id) =>
    readFileSync(`/proc/self/task/${id}/stat`, 'utf8'),
  );
  // The fields behind the name, which may contain spaces: the state is the third of all, the nice value the nineteenth.
  const values = threads.map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]));
  return values.toSorted((a, b) => a - b);
}

describe('a large proxy_config', () => {
  it.runIf(process.platform === 'linux')(
    'is parsed with a lower priority, but not so low that a busy core starves it',
    async () => {
      const { parser } = create();
      const own = getPriority();
      await parser.proxyConfig(large(opaque('v')), options);
      expect(niceValues().at(-1)).toBe(Math.min(19, own + 5));
    },
  );

  it('is parsed in the thread as it is at once, with its values and warnings', async () => {
    const { parser } = create();
    const document = large(opaque('a-value-of-the-author'));
    const [parsed, whole] = [await parser.proxyConfig(document, options), parseProxyConfig(document)];
    expect(parsed).toStrictEqual(whole);
    expect(parsed?.ok && parsed.warnings.length).toBeGreaterThan(0);
    const values = opaqueValues(valid(parsed));
    expect(values.map((value) => value.equals('a-value-of-the-author'))).toEqual([true]);
  });

  it('keeps a stored value, which is the same object and never goes to the thread', async () => {
    const { parser } = create();
    const stored = valid(parseProxyConfig(large(opaque('a-stored-value'))));
    const posted = vi.spyOn(Worker.prototype, 'postMessage');
    const parsed = await parser.proxyConfig(large(opaque()), { allowWildcards: [], stored });
    expect(opaqueValues(valid(parsed))[0]).toBe(opaqueValues(stored)[0]);
    expect(posted.mock.calls).toHaveLength(1);
    expect(String(posted.mock.calls[0]?.[0])).toContain('h1.large.test');
    expect(String(posted.mock.calls[0]?.[0])).not.toContain('a-stored-value');
    posted.mockRestore();
  });

  it.each([
    ['that is invalid', large({ name: 'Host', type: 'plaintext', value: 'x' })],
    ['that has no value to keep', large(opaque(), 'another')],
    ['of too many values', { rules: hosts.map(() => ({ match_hosts: hosts.slice(0, 90) })) }],
    ['with a key __proto__', JSON.parse(`{"__proto__":{"a":1},"description":"${PAD}"}`)],
    ['that is no object', PAD],
  ])('%s has the same issues', async (_, document) => {
    const { parser } = create();
    const given = { allowWildcards: [], stored: valid(parseProxyConfig(large(opaque('a-stored-value')))) };
    const parsed = await parser.proxyConfig(document, given);
    expect(parsed).toStrictEqual(parseProxyConfig(document, given));
    expect(parsed?.ok).toBe(false);
  });

  it('may cover a public suffix that the operator allows', async () => {
    const { parser } = create();
    const wide = { match_hosts: ['*.github.io'], headers: [plaintext] };
    const document = { rules: [...large(plaintext).rules, wide] };
    expect((await parser.proxyConfig(document, options))?.ok).toBe(false);
    const allowed = { allowWildcards: ['github.io'], stored: undefined };
    expect((await parser.proxyConfig(document, allowed))?.ok).toBe(true);
  });

  it('must not name the reserved host', async () => {
    const { parser } = create();
    const given = { reservedHost: 'h1.large.test' };
    const parsed = await parser.proxyConfig(large(plaintext), given);
    expect(parsed).toStrictEqual(parseProxyConfig(large(plaintext), given));
    expect(parsed?.ok).toBe(false);
  });

  it('gets its own result when several are sent at once', async () => {
    const { parser } = create();
    const documents = Array.from({ length: 12 }, (_, n) => large(opaque(`value-${n}`)));
    const parsed = await Promise.all(documents.map((document) => parser.proxyConfig(document, options)));
    const found = parsed.map((one, n) => opaqueValues(valid(one))[0]?.equals(`value-${n}`));
    expect(found).toEqual(documents.map(() => true));
  });
});

describe('a thread', () => {
  it('that is idle ends, and the next document starts another', async () => {
    const { parser, lines } = create({ idleMs: 1 });
    const posted = vi.spyOn(Worker.prototype, 'postMessage');
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await parser.proxyConfig(large(plaintext), options))?.ok).toBe(true);
      const thread = posted.mock.contexts[turn] as Worker;
      // The id of a thread that has ended.
      if (thread.threadId !== -1) await once(thread, 'exit');
    }
    expect(new Set(posted.mock.contexts).size).toBe(3);
    posted.mockRestore();
    expect(lines).toEqual([]);
  });

  const givesNoResult = async (dies: string): Promise<void> => {
    const { parser, lines } = create({ program: BROKEN });
    const [dead, next] = await Promise.all([
      parser.proxyConfig({ dies, pad: PAD }, options),
      parser.proxyConfig({ pad: PAD }, options),
    ]);
    expect(dead).toBeUndefined();
    expect(next?.ok).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('the thread that parses documents ended');
    expect(lines[0]).not.toContain('xxxx');
  };
  it.each(['exit', 'throw'])('that dies (%s) gives no result, and is replaced', givesNoResult);
  it('that dies (memory) gives no result, and is replaced', { tags: ['long'] }, () =>
    givesNoResult('memory'),
  );

  it('that does not respond in time gives no result', async () => {
    const { parser, lines } = create({ program: BROKEN, jobMs: 100 });
    expect(await parser.proxyConfig({ dies: 'hangs', pad: PAD }, options)).toBeUndefined();
    expect(lines).toHaveLength(1);
  });

  it('that cannot be started gives no result', async () => {
    const { parser, lines } = create({ program: MISSING });
    expect(await parser.proxyConfig(large(opaque('v')), options)).toBeUndefined();
    expect(lines).toHaveLength(1);
  });

  it('is not started by a small document', async () => {
    const { parser } = create({ program: MISSING });
    const small = { rules: [{ match_hosts: ['a.test'], headers: [opaque('v')] }] };
    expect((await parser.proxyConfig(small, options))?.ok).toBe(true);
    expect(await parser.proxyConfig(undefined, options)).toEqual(parseProxyConfig(undefined));
  });
});
