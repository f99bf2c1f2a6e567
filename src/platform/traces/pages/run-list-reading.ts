// Reads a page of the runs of a project. A filter that is not one, and one that takes too long, are said on the page, beside what the
// reader has written.
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { type Filter, toFilter } from '../filter/filter.ts';
import { parseFilter } from '../filter/parser.ts';
import { formatRunCursor, parseRunCursor } from '../queries/run-cursor.ts';
import type { FoundRun, RunPlace, TraceStore } from '../trace-store.ts';
import { filterProblem } from './filter-problem.ts';
import { type Html, html } from '../../../base/html/html.ts';
import { createLinks } from './page-links.ts';
import type { RunList, Since } from './runs-page.ts';

export type GivenList = Pick<RunList, 'projectId' | 'filter' | 'shows' | 'since'> & {
  readonly workspace?: string | undefined;
  /** A cursor. */
  readonly after?: string | undefined;
};

const RUNS_OF_PAGE = 50;
const HOUR_MS = 3_600_000;
const HOURS: Readonly<Record<Since, number>> = { '1h': 1, '1d': 24, '7d': 168, '30d': 720, all: 400 * 24 };

export async function findRunList(
  store: TraceStore,
  db: Reader,
  workspaceId: string,
  given: GivenList,
): Promise<RunList> {
  const { projectId, filter, shows, since, workspace, after } = given;
  const scope = { projectId, filter, shows, since };
  const address = (next?: string): string =>
    createLinks(workspace).project(projectId, { filter, shows, since, after: next });
  const found = await findRuns(store, db, {
    ...{ workspaceId, given },
    place: after === undefined ? undefined : parseRunCursor(after, scope),
  });
  const runs = found.runs.slice(0, RUNS_OF_PAGE);
  const last = found.runs.length > RUNS_OF_PAGE ? runs.at(-1) : undefined;
  return {
    ...{ ...scope, workspace, runs, problem: found.problem },
    first: after === undefined ? undefined : address(),
    after: last && address(formatRunCursor(last, scope)),
  };
}

type Found = { readonly runs: readonly FoundRun[]; readonly problem: Html | undefined };

async function findRuns(
  store: TraceStore,
  db: Reader,
  asked: { readonly workspaceId: string; readonly given: GivenList; readonly place: RunPlace | undefined },
): Promise<Found> {
  const { workspaceId, given, place: after } = asked;
  const { filter: text, shows, since, projectId } = given;
  const parsed = text.trim() === '' ? undefined : parseFilter(text);
  if (parsed?.ok === false) return { runs: [], problem: filterProblem(text, parsed.issues) };
  const filters = [
    ...(shows === 'traces' ? [IS_ROOT] : []),
    ...(parsed === undefined ? [] : [parsed.filter]),
  ];
  try {
    const runs = await store.queryRuns(db, {
      ...{ workspaceId, projects: [projectId], filter: toFilter(filters), order: 'desc' },
      ...{ limit: RUNS_OF_PAGE + 1, ...(after === undefined ? {} : { after }) },
      window: { from: new Date(Date.now() - HOURS[since] * HOUR_MS).toISOString() },
    });
    return { runs, problem: undefined };
  } catch (error) {
    if (!(error instanceof DomainError) || error.kind !== 'timeout') throw error;
    return { runs: [], problem: html`<div role="alert" id="problem"><p>${error.message}</p></div>` };
  }
}

const IS_ROOT: Filter = {
  ...{ kind: 'column', column: 'is_root' },
  test: { is: 'equal', value: { type: 'flag', flag: true } },
};
