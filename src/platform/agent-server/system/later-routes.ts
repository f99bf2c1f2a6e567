// Paths of the public contract that this version does not have: 501, so that clients tell them from a wrong path.
import { z } from '../../../base/schema.ts';
import type { Access } from '../../api/access.ts';
import { type Method, type Route, defineRoute } from '../../api/route.ts';

const response = z.strictObject({ detail: z.string() }).meta({ id: 'AgentServerNotSupported' });
const anything = z.unknown().optional();

const LATER: readonly (readonly [what: string, rows: readonly (readonly [Method, string])[]])[] = [
  ['Batches of runs', [['POST', '/runs/batch']]],
  [
    'Schedules of runs',
    [
      ['POST', '/runs/crons'],
      ['POST', '/runs/crons/search'],
      ['POST', '/runs/crons/count'],
      ['PATCH', '/runs/crons/{cron_id}'],
      ['DELETE', '/runs/crons/{cron_id}'],
      ['POST', '/threads/{thread_id}/runs/crons'],
    ],
  ],
  [
    'The store',
    [
      ['GET', '/store/items'],
      ['PUT', '/store/items'],
      ['DELETE', '/store/items'],
      ['POST', '/store/items/search'],
      ['POST', '/store/namespaces'],
    ],
  ],
  ['Pruning of threads', [['POST', '/threads/prune']]],
];

/** Who may not call the other routes learns nothing here either. */
export function createLaterRoutes(access: Access): readonly Route[] {
  return LATER.flatMap(([what, rows]) =>
    rows.map(([method, path]) => laterRoute(access, what, { method, path })),
  );
}

function laterRoute(
  access: Access,
  what: string,
  { method, path }: { readonly method: Method; readonly path: string },
): Route {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const detail = `${what}: not supported by this version`;
  return defineRoute({
    ...{ method, path, access, tag: 'Later', summary: detail },
    tracking: { untracked: 'it does nothing' },
    ...(names.length > 0 && {
      params: z.strictObject(Object.fromEntries(names.map((name) => [name, z.string()]))),
    }),
    ...(method !== 'GET' && { body: anything }),
    responses: { 501: response },
    handle: async () => ({ body: { detail } }),
  });
}
