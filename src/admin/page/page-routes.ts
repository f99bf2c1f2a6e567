// The pages, as data.
import { exchangesPage, followRows } from './exchanges-page.ts';
import { explainForm, explainPage } from './explain-page.ts';
import type { PageRoute } from './page-request.ts';
import { rulesPage } from './rules-page.ts';
import { statePage } from './state-page.ts';

export const pageRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/ui', handler: exchangesPage },
  { method: 'GET', path: '/ui/stream', handler: followRows },
  { method: 'GET', path: '/ui/explain', handler: explainForm },
  { method: 'POST', path: '/ui/explain', handler: explainPage },
  { method: 'GET', path: '/ui/rules', handler: rulesPage },
  { method: 'GET', path: '/ui/state', handler: statePage },
];
