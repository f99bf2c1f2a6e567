// The default assistant of each graph, made when a process starts. One that exists stays as somebody has changed it; one whose
// graph is not served any more stays too, with its runs, and is refused for new ones.
import type { Store, Transaction } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Deployment } from '../configuration/deployment.ts';
import { defaultAssistantId } from './assistant-id.ts';

/**
 * Several processes may do so at once. Returns the graphs whose default assistant somebody else had taken: clients choose ids, and one
 * may have chosen that of a graph which was not served yet.
 */
export async function ensureDefaultAssistants(
  store: Pick<Store, 'write'>,
  graphs: Deployment['graphs'],
): Promise<readonly string[]> {
  // In one order, so that processes do not wait for each other in a circle.
  const rows = Array.from(graphs, ([graph, { description }]) => ({
    id: defaultAssistantId(graph),
    graph,
    description,
  }));
  const sorted = JSON.stringify(rows.toSorted((one, other) => (one.id < other.id ? -1 : 1)));
  const given = sql`jsonb_to_recordset(${sorted}::jsonb) as given (id uuid, graph text, description text)`;
  return store.write(async (trx) => {
    const taken = await removeTaken(trx, given);
    // A database that is full refuses the statement also where it would insert nothing: the process must start all the same.
    if (taken.length === 0 && !(await isAnyMissing(trx, given))) return [];
    // A run of the one that was there keeps its assistant.
    await sql`
      with made as (
        insert into agent_assistants as known (assistant_id, graph_id, name, description, metadata)
        select id, graph, graph, description, '{"created_by": "system"}' from ${given}
        on conflict (assistant_id) do update set
          graph_id = excluded.graph_id, name = excluded.name, description = excluded.description,
          metadata = excluded.metadata, config = '{}', context = '{}', version = 1, created_at = now(), updated_at = now()
          where known.assistant_id = any(${taken.map(({ id }) => id)}::uuid[])
        returning *
      )
      insert into agent_assistant_versions
        (assistant_id, version, graph_id, name, description, config, context, metadata)
      select assistant_id, version, graph_id, name, description, config, context, metadata from made
    `.execute(trx);
    return taken.map(({ graph }) => graph);
  });
}

async function isAnyMissing(trx: Transaction, given: ReturnType<typeof sql>): Promise<boolean> {
  const { rows } = await sql`
    select from ${given} where not exists (select from agent_assistants a where a.assistant_id = id) limit 1`.execute(
    trx,
  );
  return rows.length > 0;
}

type Taken = { readonly id: string; readonly graph: string };

/**
 * Nobody can create an assistant of a graph that is not served: one whose first version is of another graph was made by a client.
 * Its versions are removed.
 */
async function removeTaken(trx: Transaction, given: ReturnType<typeof sql>): Promise<readonly Taken[]> {
  const { rows } = await sql<Taken>`
    select id, graph from ${given} join agent_assistants a on a.assistant_id = id
    where not exists (
      select from agent_assistant_versions v where v.assistant_id = id and v.version = 1 and v.graph_id = graph)
    order by id for update of a`.execute(trx);
  const ids = rows.map(({ id }) => id);
  if (ids.length > 0)
    await trx
      .deleteFrom('agent_assistant_versions')
      .where('assistant_id', '=', sql<string>`any(${ids}::uuid[])`)
      .execute();
  return rows;
}
