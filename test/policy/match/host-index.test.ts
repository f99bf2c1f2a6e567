// The index only finds candidates: it matches what a check of every compiled pattern matches.
import * as fc from 'fast-check';
import picomatch from 'picomatch';
import { describe, expect, it, vi } from 'vitest';
import { parseAuthority } from '../../../src/policy/authority/authority.ts';
import { createHostIndex } from '../../../src/policy/match/host-index.ts';
import { compileHostPattern, parseHostPattern } from '../../../src/policy/match/host-pattern.ts';
import { runs } from '../../support/run-size.ts';

const label = fc.constantFrom('a', 'b', 'c');
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
const port = fc.constantFrom('', ':443', ':8443');
const patternText = fc.tuple(fc.constantFrom('', '*.'), name, port).map((parts) => parts.join(''));

describe('the host index', () => {
  it('matches as a walk through all patterns does, in their order', () => {
    fc.assert(
      fc.property(fc.array(patternText, { maxLength: 12 }), name, port, (texts, host, hostPort) => {
        const entries = texts.flatMap((text, value) => {
          const pattern = parseHostPattern(text);
          return typeof pattern === 'string' ? [] : [{ pattern, value }];
        });
        const authority = parseAuthority(`${host}${hostPort}`, 443);
        if (typeof authority === 'string') throw new Error(authority);
        const walked = entries.filter(({ pattern }) => compileHostPattern(pattern)(authority));
        const found = createHostIndex(entries).matching(authority);
        expect(found.map(({ value }) => value)).toEqual(walked.map(({ value }) => value));
      }),
      { numRuns: runs(3000) },
    );
  });

  it('takes no candidate that its compiled pattern does not match, and every one that it does', () => {
    const entries = ['*.a.test', 'x.a.test', '*.b.test', 'x.b.test'].flatMap((text, value) => {
      const pattern = parseHostPattern(text);
      return typeof pattern === 'string' ? [] : [{ pattern, value }];
    });
    const authority = parseAuthority('x.a.test:443');
    if (typeof authority === 'string') throw new Error(authority);
    const matchingWith = (compiled: RegExp): readonly number[] => {
      const makeRe = vi.spyOn(picomatch, 'makeRe').mockReturnValue(compiled);
      const found = createHostIndex(entries).matching(authority);
      makeRe.mockRestore();
      return found.map(({ value }) => value);
    };
    expect(matchingWith(/^\b$/)).toEqual([]);
    expect(matchingWith(/^/)).toEqual([0, 1]);
  });

  it('compiles a pattern when it is first a candidate, once for all its ports', () => {
    const makeRe = vi.spyOn(picomatch, 'makeRe');
    const entries = Array.from({ length: 1000 }, (_, i) => [`*.h${i}.test`, `*.h${i}.test:443`])
      .flat()
      .flatMap((text, value) => {
        const pattern = parseHostPattern(text);
        return typeof pattern === 'string' ? [] : [{ pattern, value }];
      });
    const index = createHostIndex(entries);
    const made = makeRe.mock.calls.length;
    const authority = parseAuthority('a.h7.test:443');
    if (typeof authority === 'string') throw new Error(authority);
    const found = [index.matching(authority), index.matching(authority)];
    const asked = makeRe.mock.calls.length;
    makeRe.mockRestore();
    expect(found.map((list) => list.map(({ value }) => value))).toEqual([
      [14, 15],
      [14, 15],
    ]);
    expect([made, asked]).toEqual([0, 1]);
  });
});
