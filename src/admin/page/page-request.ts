// A request for a page, and what its handlers need.
import type { Log } from '../../base/log.ts';
import type { AccessGuard } from '../access-guard.ts';
import type { AdminResponse } from '../admin-errors.ts';
import type { AdminRecord, UnauthenticatedRecords } from '../admin-records.ts';
import type { Readers } from '../records/record-stream.ts';
import type { AdminExchange } from '../request-pipeline.ts';
import type { AdminTarget } from '../target.ts';
import type { PageContent } from './page-frame.ts';
import type { PageSession, PageSessions } from './page-sessions.ts';
import type { PageTarget } from './page-target.ts';
import type { RecordFeed } from './record-feed.ts';

export type PageScope = {
  readonly target: Pick<AdminTarget, 'loadPage'>;
  readonly guard: Pick<AccessGuard, 'rejectForm' | 'rejectToken'>;
  readonly sessions: PageSessions;
  readonly feed: RecordFeed;
  /** Of the API and of the page together. */
  readonly readers: Readers;
  /** Of the forms that begin sessions: who sends it has read a page of this process. */
  readonly signInToken: Pick<PageSession, 'formToken' | 'hasFormToken'>;
  readonly log: Log;
  readonly unauthenticated: Pick<UnauthenticatedRecords, 'add'>;
  record(entry: AdminRecord): void;
};

export type PageExchange = AdminExchange & {
  readonly query: URLSearchParams;
  /** Empty for a request without a form. */
  readonly form: URLSearchParams;
};

/** What a page is made of, for somebody with a session. */
export type PageRequest = Pick<PageExchange, 'query' | 'form'> & {
  readonly session: PageSession;
  readonly page: PageTarget;
  readonly scope: Pick<PageScope, 'feed' | 'readers' | 'sessions'>;
  readonly exchange: Pick<PageExchange, 'left' | 'draining' | 'closed'>;
};

export type PageRoute = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  handler(request: PageRequest): PageContent | AdminResponse;
};
