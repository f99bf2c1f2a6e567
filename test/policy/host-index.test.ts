// The index narrows and never decides: it answers what asking every compiled pattern answers.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAuthority } from '../../src/policy/authority.ts';
import { createHostIndex } from '../../src/policy/host-index.ts';
import { compileHostPattern, parseHostPattern } from '../../src/policy/host-pattern.ts';

const label = fc.constantFrom('a', 'b', 'c');
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
const port = fc.constantFrom('', ':443', ':8443');
const patternText = fc.tuple(fc.constantFrom('', '*.'), name, port).map((parts) => parts.join(''));

describe('the host index', () => {
  it('answers as a walk through all patterns does, in their order', () => {
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
      { numRuns: 3000 },
    );
  });
});
