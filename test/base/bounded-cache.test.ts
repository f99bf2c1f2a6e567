import { expect, it } from 'vitest';
import { BoundedCache } from '../../src/base/bounded-cache.ts';

function cacheAt(start: number, options: { max?: number; ttlMs?: number } = {}) {
  const clock = { time: start };
  const cache = new BoundedCache<string>({ max: 3, ttlMs: 1_000, ...options, now: () => clock.time });
  return { cache, clock };
}

const ages: readonly { name: string; start: number; age: number; found: boolean }[] = [
  { name: 'is there at once', start: 5, age: 0, found: true },
  { name: 'is there just before its time is up', start: 5, age: 999.9, found: true },
  { name: 'is gone when its time is up', start: 5, age: 1_000, found: false },
  { name: 'is gone long after', start: 5, age: 1e9, found: false },
  { name: 'expires also when written at time 0', start: 0, age: 1_000, found: false },
];

it.each(ages)('an entry $name', ({ start, age, found }) => {
  const { cache, clock } = cacheAt(start);
  cache.set('a', 'value');
  clock.time += age;
  expect(cache.get('a')).toBe(found ? 'value' : undefined);
  expect(cache.size).toBe(found ? 1 : 0);
});

it('a time of its own overrides the common one', () => {
  const { cache, clock } = cacheAt(0);
  cache.set('short', 'value', 10);
  cache.set('common', 'value');
  clock.time = 10;
  expect([cache.get('short'), cache.get('common')]).toEqual([undefined, 'value']);
});

it('without a time an entry stays', () => {
  const clock = { time: 0 };
  const cache = new BoundedCache<string>({ max: 3, now: () => clock.time });
  cache.set('a', 'value');
  clock.time = Number.MAX_SAFE_INTEGER;
  expect(cache.get('a')).toBe('value');
});

it('writing again renews value and time', () => {
  const { cache, clock } = cacheAt(0);
  cache.set('a', 'old');
  clock.time = 999;
  cache.set('a', 'renewed');
  clock.time = 1_998;
  expect(cache.get('a')).toBe('renewed');
  expect(cache.size).toBe(1);
});

it('the least recently used entry leaves when a fourth comes', () => {
  const { cache } = cacheAt(0);
  for (const key of ['a', 'b', 'c']) cache.set(key, key);
  cache.get('a');
  cache.set('d', 'd');
  expect([...cache.keys()]).toEqual(['d', 'a', 'c']);
});

it('bounded in bytes, the least recently used entries are evicted', () => {
  const cache = new BoundedCache<string>({ max: 10, bytes: { max: 10, of: (value) => value.length } });
  for (const [key, bytes] of Object.entries({ a: 4, b: 4, c: 2 })) cache.set(key, 'x'.repeat(bytes));
  expect([...cache.keys()]).toEqual(['c', 'b', 'a']);
  cache.get('a');
  cache.set('d', 'xxx');
  expect([...cache.keys()]).toEqual(['d', 'a', 'c']);
});

it('an entry that is larger than all together may be is not stored, and replaces none', () => {
  const cache = new BoundedCache<string>({ max: 10, bytes: { max: 10, of: (value) => value.length } });
  cache.set('a', 'x');
  cache.set('b', 'x');
  cache.set('a', 'x'.repeat(11));
  expect([...cache.keys()]).toEqual(['b']);
});

it('each value that leaves is reported once: evicted, replaced, expired, deleted or cleared', () => {
  const clock = { time: 0 };
  const gone: string[] = [];
  const onEvict = (value: string): void => void gone.push(value);
  const cache = new BoundedCache<string>({ max: 2, ttlMs: 10, now: () => clock.time, onEvict });
  for (const key of ['a', 'b', 'c']) cache.set(key, key);
  cache.set('b', 'renewed');
  expect(gone).toEqual(['a', 'b']);
  clock.time = 10;
  cache.get('b');
  cache.delete('c');
  cache.set('d', 'd');
  cache.clear();
  expect(gone).toEqual(['a', 'b', 'renewed', 'c', 'd']);
});

it('delete and clear forget', () => {
  const { cache } = cacheAt(0);
  for (const key of ['a', 'b']) cache.set(key, key);
  cache.delete('a');
  expect([cache.get('a'), cache.get('b')]).toEqual([undefined, 'b']);
  cache.clear();
  expect([cache.get('b'), cache.size]).toEqual([undefined, 0]);
});

it('a clear begins a new generation, and nothing else does', () => {
  const { cache } = cacheAt(0);
  const { generation } = cache;
  cache.set('a', 'value');
  cache.delete('a');
  expect(cache.generation).toBe(generation);
  cache.clear();
  expect(cache.generation).not.toBe(generation);
});
