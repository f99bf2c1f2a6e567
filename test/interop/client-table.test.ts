// The table of `npm run clients`: each row can be installed, named and counted, and holds nothing that `run` should set.
import { describe, expect, it } from 'vitest';
import { clientTable } from '../../interop/clients/client-table.ts';
import { installations } from '../../interop/clients/installation/installations.ts';
import { parseOptions } from '../../interop/clients/options.ts';
import { MIN_RAN } from '../../interop/clients/verdict.ts';
import { bundleVariables, extraVariable } from '../../src/tls/trust-variables.ts';

const commandsOf = (row: (typeof clientTable)[number]): readonly string[] =>
  [row.version, row.command, row.cure?.command ?? '', ...Object.values(row.settings ?? {})].filter(Boolean);

/** The names in braces. */
const placeholdersOf = (command: string): readonly string[] =>
  [...command.matchAll(/(?<!\$)\{([a-z][\w-]*)\}/g)].map(([, name = '']) => name);

describe('the table of clients', () => {
  it('has more clients than must run', () => expect(clientTable.length).toBeGreaterThan(MIN_RAN));

  it('names each of them once, for the command line and for the document', () => {
    const names = clientTable.map(({ name }) => name);
    expect(names.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
    const shown = clientTable.map(({ group, client }) => `${group}: ${client}`);
    expect(new Set(shown).size).toBe(shown.length);
  });

  it('needs only what can be installed, and everything that can', () => {
    const needed = new Set(clientTable.flatMap(({ needs }) => needs));
    expect([...needed].toSorted()).toEqual(Object.keys(installations).toSorted());
  });

  it('needs what its commands use', () => {
    const fixed = ['node', 'programs', 'scratch'];
    const missing = clientTable.flatMap((row) => {
      const used = commandsOf(row).flatMap(placeholdersOf);
      return used.filter((name) => ![...fixed, ...row.needs].includes(name)).map((name) => [row.name, name]);
    });
    expect(missing).toEqual([]);
  });

  it('sets nothing in place of run', () => {
    const ofRun = new RegExp(
      `^(?:${[...bundleVariables, extraVariable].join('|')}|.*_PROXY|.*_OPTIONS)$`,
      'i',
    );
    const names = clientTable.flatMap(({ name, settings }) =>
      Object.keys(settings ?? {}).map((variable) => [name, variable] as const),
    );
    expect(names.filter(([, variable]) => ofRun.test(variable))).toEqual([]);
  });

  it('has 15 clients behind proxy with a token', () =>
    expect(clientTable.filter(({ token }) => token === true)).toHaveLength(15));

  it('counts at least one request', () =>
    expect(clientTable.filter(({ requests }) => requests !== undefined && requests < 1)).toEqual([]));
});

describe('--only', () => {
  it('selects clients and groups', () => {
    const { rows, isWhole } = parseOptions(['--only', 'curl, java'], clientTable);
    expect(new Set(rows.map(({ name, group }) => (group === 'java' ? group : name)))).toEqual(
      new Set(['curl', 'java']),
    );
    expect(isWhole).toBe(false);
  });

  it('rejects a name that is in neither', () =>
    expect(() => parseOptions(['--only', 'curl,curly'], clientTable)).toThrow('--only: curly is neither'));

  it('is not set: all clients', () => {
    const { rows, isWhole } = parseOptions([], clientTable);
    expect([rows, isWhole]).toEqual([clientTable, true]);
  });
});
