import { describe, expect, it } from 'vitest';
import { programs, programsWithout } from '../../../src/cli/client/programs.ts';

describe('--without', () => {
  it.each([undefined, '', ','])('%j leaves out nothing', (list) =>
    expect([...programsWithout(list)]).toEqual(programs),
  );

  it('leaves out what it names', () => {
    const rest = programs.filter((name) => name !== 'java' && name !== 'apt');
    expect([...programsWithout('java, apt')]).toEqual(rest);
  });

  it('names what it does not know, and lists what it knows', () => {
    expect(() => programsWithout('java,jvm')).toThrow(/^--without: jvm is not in the list: apt, .*yarn$/);
  });
});
