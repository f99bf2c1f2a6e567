// The rules of the stage `load`: one host that gets a credential, many names below another, rules that are expensive to
// match, a scrubbed body, and callbacks whose responses are expensive to parse.
import { type Exchange, jsonResponse, response } from '../../support/recording-origin.ts';
import { bearerRule } from '../../invariants/credential-scene.ts';

/** Names that the host proves. */
export const ruleHosts: readonly string[] = [
  'api.test',
  'narrow.test',
  'searched.test',
  'called.test',
  'deep.test',
  'keys.test',
  ...Array.from({ length: 40 }, (_, i) => `n${i}.many.test`),
];

const steps = Array.from({ length: 10 }, (_, i) => `/*/*a*/*a*a*b/${i}/**`);

export const rules: readonly unknown[] = [
  bearerRule('api.test'),
  bearerRule('*.many.test'),
  bearerRule('narrow.test', { match_paths: steps }),
  bearerRule('searched.test', { scrub: 'body' }),
];

export function callbacksAt(url: string): readonly unknown[] {
  return ['called', 'deep', 'keys'].map((name) => ({
    match_hosts: [`${name}.test`],
    url: `${url}/${name}`,
    ttl_seconds: 60,
  }));
}

const replies: Readonly<Record<string, () => Buffer>> = {
  called: () => jsonResponse({ headers: { 'X-Called': 'value-of-the-callback' } }),
  // The deepest nesting that fits into 64 KiB.
  deep: () => response(200, [['Content-Type', 'application/json']], `{"headers":${'['.repeat(60_000)}`),
  keys: () => jsonResponse({ headers: {}, ...integerKeys(5_000) }),
};

/** Property names that V8 hashes by their integer value. */
function integerKeys(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [String(i * 16_777_216), 0]));
}

export async function reply({ request, readBody, send }: Exchange): Promise<void> {
  await readBody();
  await send(replies[request.target.slice(1)]?.() ?? jsonResponse({}, 404));
}
