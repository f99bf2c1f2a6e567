import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { boxName, generateName, isBoxId } from '../../../src/platform/sandboxes/box-names.ts';

describe('the name of a box', () => {
  it.each(['a', 'box-1', 'a'.repeat(63), '0', generateName()])('may be %s', (name) =>
    expect(boxName.safeParse(name).success).toBe(true),
  );

  it.each(['', '-a', 'a-', 'A', 'a_b', 'a.b', 'a b', 'ä', 'a'.repeat(64), 'a/b', '\0'])(
    'may not be %j',
    (name) => expect(boxName.safeParse(name).success).toBe(false),
  );

  it('never looks like an id', () => {
    const id = randomUUID();
    expect([isBoxId(id), boxName.safeParse(id).success]).toEqual([true, false]);
  });

  it('is generated differently each time', () => {
    const names = Array.from({ length: 1_000 }, generateName);
    expect(new Set(names).size).toBe(1_000);
    expect(names.filter((name) => !boxName.safeParse(name).success)).toEqual([]);
  });
});
