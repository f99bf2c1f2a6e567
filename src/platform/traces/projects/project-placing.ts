// The projects of runs that are written, in their transaction: found by id or by name, and made where a name is new. They are locked
// against their deletion until the commit, so that no run comes into a project after its removal has begun.
import { DomainError } from '../../../base/domain-error.ts';
import type { Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { PlacedPart, RunPart } from '../runs/run-part.ts';
import { noProject } from './projects.ts';

/** Throws `not_found` for an id that is no project of the workspace. */
export async function placeParts(
  trx: Transaction,
  workspaceId: string,
  parts: readonly RunPart[],
): Promise<readonly PlacedPart[]> {
  const places = await findPlaces(trx, workspaceId, parts);
  const wanted = parts.filter(({ id }) => !places.has(id)).map(({ project }) => project);
  const ids = new Set(wanted.flatMap((project) => ('id' in project ? [project.id] : [])));
  const names = new Set(wanted.flatMap((project) => ('name' in project ? [project.name] : [])));
  await requireProjects(trx, workspaceId, ids);
  const byName = await findOrMake(trx, workspaceId, names);
  return parts.map((part) => {
    const { project } = part;
    const named = 'id' in project ? project.id : byName.get(project.name);
    const id = places.get(part.id) ?? named;
    if (id === undefined) throw new Error('a project was neither found nor made');
    return { ...part, project: { rank: project.rank, id } };
  });
}

/**
 * All into the project of this name, which a deployment has: its runs without a project too. Throws `forbidden` for a part that
 * names another one.
 */
export async function placePartsInto(
  trx: Transaction,
  workspaceId: string,
  name: string,
  parts: readonly RunPart[],
): Promise<{ readonly projectId: string; readonly placed: readonly PlacedPart[] }> {
  const projectId = (await findOrMake(trx, workspaceId, new Set([name]))).get(name);
  if (projectId === undefined) throw new Error('a project was neither found nor made');
  const placed = parts.map((part) => {
    const { project } = part;
    const isOwn = 'id' in project ? project.id === projectId : project.rank === 0 || project.name === name;
    if (!isOwn) throw ofAnotherProject();
    return { ...part, project: { rank: project.rank, id: projectId } };
  });
  return { projectId, placed };
}

/** Throws `forbidden` where a run is in another project, or was before its parts were merged in this transaction. */
export async function confirmProject(
  trx: Transaction,
  workspaceId: string,
  projectId: string,
  runs: { readonly merged: readonly string[]; readonly named: readonly string[] },
): Promise<void> {
  const other = await trx
    .selectFrom('trace_run_places')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where((eb) =>
      eb.or([
        sql<boolean>`id = any(${runs.merged}::uuid[])
          and (session_id <> ${projectId}::uuid or last_session_id <> ${projectId}::uuid)`,
        sql<boolean>`id = any(${runs.named}::uuid[]) and session_id <> ${projectId}::uuid`,
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  if (other !== undefined) throw ofAnotherProject();
}

export const ofAnotherProject = (): DomainError =>
  new DomainError(
    'forbidden',
    'A deployment sends runs to the tracing project of its name alone: leave session_id and session_name out, and send no more of runs of other projects',
  );

/** Of runs that are there already, and whose project this request does not name; not of one that is gone, whose runs are removed. */
async function findPlaces(
  trx: Transaction,
  workspaceId: string,
  parts: readonly RunPart[],
): Promise<ReadonlyMap<string, string>> {
  const ids = parts.filter(({ project }) => project.rank === 0).map(({ id }) => id);
  if (ids.length === 0) return new Map();
  const rows = await trx
    .selectFrom('trace_run_places as r')
    .innerJoin('trace_projects as p', (join) =>
      join.onRef('p.workspace_id', '=', 'r.workspace_id').onRef('p.id', '=', 'r.session_id'),
    )
    .select(['r.id', 'r.session_id'])
    .where('r.workspace_id', '=', workspaceId)
    .where('r.id', '=', sql<string>`any(${ids}::uuid[])`)
    .forKeyShare('p')
    .execute();
  return new Map(rows.map(({ id, session_id }) => [id, session_id]));
}

async function requireProjects(
  trx: Transaction,
  workspaceId: string,
  ids: ReadonlySet<string>,
): Promise<void> {
  if (ids.size === 0) return;
  const rows = await trx
    .selectFrom('trace_projects')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', sql<string>`any(${[...ids]}::uuid[])`)
    .forKeyShare()
    .execute();
  if (rows.length < ids.size) throw noProject();
}

/** By name. */
async function findOrMake(
  trx: Transaction,
  workspaceId: string,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const found = await findByName(trx, workspaceId, [...names]);
  // In one order everywhere: two requests with the same new names wait for each other, and never both.
  const missing = [...names].filter((name) => !found.has(name)).toSorted();
  if (missing.length === 0) return found;
  // Two parameters for any number of names: a statement has 65,535 at most.
  await sql`
    insert into trace_projects (workspace_id, name) select ${workspaceId}::uuid, name from unnest(${missing}::text[]) name
    on conflict on constraint trace_projects_name do nothing`.execute(trx);
  return new Map([...found, ...(await findByName(trx, workspaceId, missing))]);
}

async function findByName(
  trx: Transaction,
  workspaceId: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0) return new Map();
  const rows = await trx
    .selectFrom('trace_projects')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', sql<string>`any(${names}::text[])`)
    .forKeyShare()
    .execute();
  return new Map(rows.map(({ id, name }) => [name, id]));
}
