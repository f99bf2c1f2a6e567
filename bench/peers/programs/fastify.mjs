// What the platform is compared with: Fastify and pg, and one named query for each request. It knows one workspace, and nobody
// has to authenticate.
import { options, requirePeer } from './loopback.mjs';

const fastify = requirePeer('fastify')();
const { Pool } = requirePeer('pg');
const { connection, workspaceId, port } = options;
const pool = new Pool({ ...connection, max: options.maxConnections });
const COLUMNS = 'id, compute_type, compute_id, compute_config, version, created_at, updated_at';

const READ = `select ${COLUMNS} from listeners where id = $1 and workspace_id = $2`;
fastify.get('/v2/listeners/:id', async (request, reply) => {
  const values = [request.params.id, workspaceId];
  const { rows } = await pool.query({ name: 'read', text: READ, values });
  return rows[0] ?? reply.code(404).send({ detail: 'not found' });
});

const CREATE = `insert into listeners (workspace_id, compute_type, compute_id, compute_config, version)
  values ($1, $2, $3, $4, $5) returning ${COLUMNS}`;
fastify.post('/v2/listeners', async ({ body }, reply) => {
  const { compute_type: type, compute_id: id, compute_config: config, version = null } = body;
  const values = [workspaceId, type, id, JSON.stringify(config), version];
  const { rows } = await pool.query({ name: 'create', text: CREATE, values });
  return reply.code(201).send(rows[0]);
});

await fastify.listen({ host: '127.0.0.1', port });
