// What `npm run clients` writes into docs/clients.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ClientRow } from '../../interop/clients/client-row.ts';
import { clientTable } from '../../interop/clients/client-table.ts';
import { createSection, replaceSection } from '../../interop/clients/document.ts';
import type { RowResult } from '../../interop/clients/suite.ts';
import { projectRoot } from '../support/spawned-process.ts';

const row: ClientRow = {
  ...{ name: 'one', client: 'client one', group: 'program', needs: [] },
  ...{ version: 'one --version', command: 'one', streams: true },
};
const result = (part: Partial<RowResult>): RowResult => ({
  ...{ row, version: '1.2', reason: undefined, uses: { proxy: 'yes', ca: 'yes' }, http: '2' },
  ...{ streamed: true, isGreenWithoutRun: false, isSilent: false },
  ...part,
});
const cure = { text: '`--ca FILE`', command: 'one --ca FILE' };

describe('the section', () => {
  it('has a row for a client that works', () =>
    expect(createSection([result({})])).toContain('| client one | 1.2 | yes | yes | 2 | yes | yes |  |'));

  it('has the cure of a client that needs it', () => {
    const cured = result({
      row: { ...row, cure },
      reason: 'ended with 60',
      uses: { proxy: 'yes', ca: 'no' },
    });
    expect(createSection([cured])).toContain('| yes | **no** | 2 | yes | with the cure | `--ca FILE` |');
  });

  it('says no where the cure did not help', () => {
    const red = result({ row: { ...row, cure }, reason: 'a', cureReason: 'b', streamed: false });
    expect(createSection([red])).toContain('| no | **no** | `--ca FILE` |');
  });

  it('escapes what would be another column', () => {
    const red = result({ reason: 'ended with 1: a|b', streamed: false });
    expect(createSection([red])).toContain('none: ended with 1: a\\|b |');
  });

  it('names the clients that could not be installed, with the reason', () =>
    expect(createSection([result({ skipped: 'gh is not installed' })])).toContain(
      '- client one: gh is not installed',
    ));

  it('begins with the counts', () => {
    const results = [
      result({ row: { ...row, token: true } }),
      result({ row: { ...row, cure }, reason: 'a' }),
      result({ skipped: 'b' }),
    ];
    expect(createSection(results)).toMatch(
      /^2 clients ran: 1 work .*, 1 of the others .* 1 of them .* 1 could not/,
    );
  });
});

describe('docs/clients.md', () => {
  const page = readFileSync(join(projectRoot, 'docs', 'clients.md'), 'utf8');

  it('keeps everything outside of the section', () => {
    const replaced = replaceSection(page, 'new');
    const outside = (text: string): string => text.replace(/(<!-- begin:.*-->)[^]*(<!-- end:)/, '$1$2');
    expect(outside(replaced)).toBe(outside(page));
    expect(replaced).toMatch(/<!-- begin:.*-->\n\nnew\n<!-- end:/);
  });

  it('needs a place for the section', () =>
    expect(() => replaceSection('no lines', 'new')).toThrow('put them where the table belongs'));

  it('shows every client of the table', () =>
    expect(clientTable.filter(({ client }) => !page.includes(client)).map(({ name }) => name)).toEqual([]));
});
