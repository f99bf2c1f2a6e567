// The part of docs/clients.md that the suite writes: one row for each client. Pure.
import { type Group, groups } from './client-row.ts';
import type { RowResult } from './suite.ts';
import { type Total, type Use } from './verdict.ts';

const BEGIN = '<!-- begin: written by npm run clients -->';
const END = '<!-- end: written by npm run clients -->';

/** The document with the section replaced. Throws an Error if the document has no place for it. */
export function replaceSection(document: string, section: string): string {
  const begin = document.indexOf(BEGIN);
  const end = document.indexOf(END);
  if (begin === -1 || end < begin)
    throw new Error(`docs/clients.md has no lines ${BEGIN} and ${END}: put them where the table belongs`);
  return `${document.slice(0, begin + BEGIN.length)}\n\n${section}\n${document.slice(end)}`;
}

export function totalOf(results: readonly RowResult[]): Total {
  const ran = results.filter(({ skipped }) => skipped === undefined);
  const names = (isMeant: (result: RowResult) => boolean): readonly string[] =>
    ran.filter(isMeant).map(({ row }) => row.name);
  return {
    ran: ran.length,
    green: ran.filter(({ reason }) => reason === undefined).length,
    cured: ran.filter((result) => isCured(result)).length,
    skipped: results.length - ran.length,
    greenWithoutRun: names(({ isGreenWithoutRun }) => isGreenWithoutRun),
    silent: names(({ isSilent }) => isSilent),
    withoutToken: names(({ tokenReason }) => tokenReason !== undefined),
  };
}

function isCured({ row: { cure }, reason, cureReason }: RowResult): boolean {
  const isTried = cure?.command !== undefined || cure?.settings !== undefined;
  return reason !== undefined && isTried && cureReason === undefined;
}

export function createSection(results: readonly RowResult[]): string {
  const { ran, green, cured, skipped } = totalOf(results);
  const withToken = results.filter(({ row, skipped: why }) => row.token === true && why === undefined);
  const summary =
    `${ran} clients ran: ${green} work with exactly what \`run\` sets, ${cured} of the others with what the last column says. ` +
    `${withToken.length} of them also ran behind \`sallyport proxy\` with a token. ${skipped} could not be installed here.`;
  const tables = (Object.keys(groups) as Group[]).flatMap((group) => {
    const rows = results.filter(({ row, skipped: why }) => row.group === group && why === undefined);
    return rows.length === 0 ? [] : [`### ${groups[group]}\n\n${HEAD}\n${rows.map(lineOf).join('\n')}\n`];
  });
  const absent = results.filter(({ skipped: why }) => why !== undefined);
  const notRun = absent.map(({ row, skipped: why }) => `- ${row.client}: ${cell(why ?? '')}`);
  return [summary, '', ...tables, ...(notRun.length === 0 ? [] : ['Not run:\n', ...notRun, ''])].join('\n');
}

const HEAD = `| client | version | uses the proxy | trusts the CA | HTTP | streams | works | cure |
|---|---|---|---|---|---|---|---|`;

function lineOf(result: RowResult): string {
  const { row, version, uses, http, streamed, reason } = result;
  const works = reason === undefined ? 'yes' : isCured(result) ? 'with the cure' : '**no**';
  const cells = [
    row.client,
    version,
    useOf(uses.proxy),
    useOf(uses.ca),
    http,
    row.streams === true ? (streamed ? 'yes' : 'no') : '',
    works,
    reason === undefined ? '' : (row.cure?.text ?? `none: ${reason}`),
  ];
  return `| ${cells.map(cell).join(' | ')} |`;
}

const useOf = (use: Use): string => ({ yes: 'yes', no: '**no**', unknown: '' })[use];

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
