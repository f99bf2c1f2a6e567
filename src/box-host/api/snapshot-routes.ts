// The routes of snapshots: from a directory of this machine, from an archive that the platform sends, listed and removed. An import
// whose caller left before its end leaves nothing.
import { basename } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { jsonResponse, type HttpResponse } from '../../base/http/http-response.ts';
import { RequestError } from '../../base/http/request-body.ts';
import { describeBug } from '../../base/log.ts';
import { z } from '../../base/schema.ts';
import { BoxError } from '../box-error.ts';
import { defaultLimits, type Snapshot, type SnapshotStore } from '../snapshots/snapshot-store.ts';
import type { BoxApiTarget, BoxRoute } from './box-routes.ts';

const directoryDocument = z.strictObject({
  directory: z.string().min(1),
  /** What the operator allows. */
  within: z.array(z.string().min(1)),
  max_bytes: z.int().min(0),
});

export const snapshotRoutes: readonly BoxRoute[] = [
  {
    method: 'GET',
    path: '/v1/snapshots',
    body: undefined,
    async handle(target) {
      const store = storeOf(target);
      const ids = (await store.list()).map(({ id }) => id).filter((id) => id !== 'base');
      const listed = await Promise.all(ids.map(async (id) => ({ id, age_ms: await ageOf(store, id) })));
      return jsonResponse(200, { snapshots: listed.filter(({ age_ms }) => age_ms !== undefined) });
    },
  },
  {
    method: 'PUT',
    path: '/v1/snapshots/{id}',
    body: directoryDocument,
    handle: (target, { id, body }) =>
      importing(target, (store) => {
        const { max_bytes: maxBytes, ...source } = body as z.output<typeof directoryDocument>;
        return store.requireDirectory(id, source, limitsOf(maxBytes));
      }),
  },
  {
    method: 'PUT',
    path: '/v1/snapshots/{id}/archives/{max_bytes}',
    body: undefined,
    isUpload: true,
    handle: (target, { id, params, upload }) =>
      importing(target, (store) =>
        store.importTar(id, upload, limitsOf(z.coerce.number().parse(params['max_bytes']))),
      ),
  },
  {
    method: 'DELETE',
    path: '/v1/snapshots/{id}',
    body: undefined,
    async handle(target, { id }) {
      await removing(() => storeOf(target).remove(id));
      return { status: 204 };
    },
  },
];

const NONE = 'The sandboxes of this machine have no files here, so there are no snapshots';

function storeOf({ engine }: BoxApiTarget): SnapshotStore {
  if (engine.snapshots !== undefined) return engine.snapshots;
  throw new BoxError('not_supported', NONE);
}

/** Undefined: it was removed meanwhile. */
function ageOf(store: SnapshotStore, id: string): Promise<number | undefined> {
  return store.ageMs(id).catch(() => undefined);
}

function limitsOf(maxBytes: number) {
  return { ...defaultLimits, maxBytes: Math.min(maxBytes, defaultLimits.maxBytes) };
}

async function removing(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw error instanceof InputError ? new BoxError('invalid_snapshot', error.message) : error;
  }
}

async function importing(
  target: BoxApiTarget,
  work: (store: SnapshotStore) => Promise<Snapshot>,
): Promise<HttpResponse> {
  const store = storeOf(target);
  try {
    const { bytes, entries } = await work(store);
    return jsonResponse(200, { bytes, entries });
  } catch (error) {
    if (error instanceof InputError) throw new BoxError('invalid_snapshot', error.message);
    if (error instanceof RequestError) throw error;
    const { code = '', path = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT') throw new BoxError('no_capacity', FULL);
    if (code === 'EACCES' || code === 'ELOOP' || code === 'ENOENT')
      throw new BoxError('invalid_snapshot', `${JSON.stringify(basename(path))} cannot be read (${code})`);
    target.log.error(describeBug(error), 'a snapshot was not imported');
    throw new BoxError('failed', 'The snapshot could not be stored: see the log of the box host');
  }
}

const FULL = 'The disk of this machine is full';
