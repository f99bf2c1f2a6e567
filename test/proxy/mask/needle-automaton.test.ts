// What searching bodies takes in memory: an automaton for each set of needles, no longer than the set lives, and only so
// many at a time.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { automatonOf } from '../../../src/proxy/mask/needle-automaton.ts';
import { compileNeedles } from '../../../src/proxy/mask/needle-set.ts';

/** A set of needles that have nothing in common, of as many bytes. */
function needlesOf(bytes: number): ReturnType<typeof compileNeedles> {
  return compileNeedles(Array.from({ length: 256 }, (_, i) => String.fromCharCode(i).repeat(bytes / 384)));
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes in use. The files that ran in this process before leave garbage, which would count. */
function used(): number {
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}

describe('the automaton of a set', () => {
  it('is made once', () => {
    const needles = compileNeedles(['sesame-open-now']);
    expect(automatonOf(needles)).toBe(automatonOf(needles));
  });

  it('gives way to newer ones, so that many sets take no more than some', { tags: ['long'] }, () => {
    const sets = Array.from({ length: 30 }, () => needlesOf(524_288));
    const [first] = sets;
    const before = used();
    const made = first && automatonOf(first);
    for (const needles of sets) automatonOf(needles);
    expect(used() - before).toBeLessThan(150_000_000);
    expect(first && automatonOf(first)).not.toBe(made);
    expect(first && automatonOf(first)).toEqual(made);
  });
});
