// The default assistant of each graph, made when a process starts. One that exists stays as somebody has changed it; one whose
// graph is not served any more stays too, with its runs, and is refused for new ones.
import type { Store } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { Deployment } from '../configuration/deployment.ts';
import { defaultAssistantId } from './assistant-id.ts';

/** Several processes may do so at once. */
export async function ensureDefaultAssistants(
  store: Pick<Store, 'write'>,
  graphs: Deployment['graphs'],
): Promise<void> {
  // In one order, so that processes do not wait for each other in a circle.
  const rows = Array.from(graphs, ([graph, { description }]) => ({
    id: defaultAssistantId(graph),
    graph,
    description,
  }));
  const sorted = JSON.stringify(rows.toSorted((one, other) => (one.id < other.id ? -1 : 1)));
  await store.write((trx) =>
    sql`
      with made as (
        insert into agent_assistants (assistant_id, graph_id, name, description, metadata)
        select id, graph, graph, description, '{"created_by": "system"}'
        from jsonb_to_recordset(${sorted}::jsonb) as given (id uuid, graph text, description text)
        on conflict (assistant_id) do nothing
        returning *
      )
      insert into agent_assistant_versions
        (assistant_id, version, graph_id, name, description, config, context, metadata)
      select assistant_id, version, graph_id, name, description, config, context, metadata from made
    `.execute(trx),
  );
}
