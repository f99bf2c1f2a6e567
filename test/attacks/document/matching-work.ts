// Counts the work of a policy to decide one path: the characters passed to string and RegExp methods, and the regular
// expressions that were created, whose own work cannot be counted. Unlike a time, a count does not depend on the machine.
import { parseAuthority } from '../../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

export type Work = { readonly characters: number; readonly expressions: number; readonly decision: string };

export function countWork(document: unknown, host: string, path: string): Work {
  const parsed = parseProxyConfig(document);
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, 1) : parsed;
  const authority = parseAuthority(host, 443);
  if (!compiled.ok || typeof authority === 'string')
    throw new Error('the document of a work row must be valid');
  // The first decision for a host fills its cache.
  compiled.value.coverOf(authority);
  using counter = countCharacters();
  const decision = compiled.value.decide(authority, path);
  const end =
    decision.kind === 'intercept'
      ? `${decision.kind} ${decision.apply}`
      : `${decision.kind} ${decision.reason}`;
  return { characters: counter.characters, expressions: counter.expressions, decision: end };
}

type Counter = Disposable & { characters: number; expressions: number };
type Method = (this: unknown, ...given: unknown[]) => unknown;

const METHODS = [
  'indexOf',
  'lastIndexOf',
  'includes',
  'startsWith',
  'endsWith',
  'split',
  'replace',
  'replaceAll',
  'match',
  'matchAll',
  'search',
] as const;

function countCharacters(): Counter {
  const undo: (() => void)[] = [];
  const counter: Counter = {
    characters: 0,
    expressions: 0,
    [Symbol.dispose]: () => undo.forEach((step) => step()),
  };
  const watch = (
    prototype: object,
    name: string,
    looked: (self: unknown, given: readonly unknown[], found: unknown) => number,
  ): void => {
    const methods = prototype as Record<string, Method>;
    const original = methods[name] as Method;
    methods[name] = function (...given) {
      const found = original.apply(this, given);
      counter.characters += looked(this, given, found);
      return found;
    };
    undo.push(() => (methods[name] = original));
  };
  for (const name of METHODS)
    watch(String.prototype, name, (self, given, found) => lookedAt(name, String(self), given, found));
  for (const name of ['exec', 'test']) watch(RegExp.prototype, name, (_, [text]) => String(text).length);
  const Original = globalThis.RegExp;
  const made = (): void => void (counter.expressions += 1);
  globalThis.RegExp = new Proxy(Original, {
    construct: (target, given) => (made(), new target(...(given as [string, string]))),
    apply: (target, _, given) => (made(), target(...(given as [string, string]))),
  });
  undo.push(() => (globalThis.RegExp = Original));
  return counter;
}

/** For `startsWith` and `endsWith` the literal; for `indexOf` the text before the match; for others the whole text. */
function lookedAt(name: string, self: string, [needle, from]: readonly unknown[], found: unknown): number {
  if (name === 'startsWith' || name === 'endsWith') return String(needle).length;
  if (name !== 'indexOf') return self.length;
  const end = typeof found === 'number' && found >= 0 ? found + String(needle).length : self.length;
  return Math.max(0, end - Number(from ?? 0));
}
