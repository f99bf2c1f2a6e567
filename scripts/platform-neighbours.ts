// `npm run platform:neighbours [-- --readers 40 --events 50000 --seconds 8]`: one organization reads a rare operation of its
// audit log with many clients, another one lists its workspaces with one. Prints what each gets alone and beside the other.
// Exits with 1 if the second one waits more than twice as long as alone.
import { randomBytes } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { percentilesOf } from '../bench/support/percentiles.ts';
import { connectOnce } from '../src/platform/store/database.ts';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { mintKey } from '../src/platform/identity/api-key.ts';
import { initPlatform, startPlatform, toDatabaseUrl } from '../test/support/platform-process.ts';
import { createScratch } from '../test/support/scratch.ts';

const { values } = parseArgs({
  options: {
    readers: { type: 'string', default: '40' },
    events: { type: 'string', default: '50000' },
    seconds: { type: 'string', default: '8' },
  },
});
const [readers, events, seconds] = [Number(values.readers), Number(values.events), Number(values.seconds)];
const MAX_RATIO = 2;

type Tenant = { readonly id: string; readonly key: string; readonly path: string };
type Figures = { readonly p50Ms: number; readonly perSecond: number; readonly rejected: number };

await using scratch = await createScratch();
// The database server runs as a user of its own where this process runs as root.
await chmod(scratch.path, 0o711);
const server = await openPostgres({
  directory: join(scratch.path, 'database'),
  log: { info: () => undefined, warn: () => undefined },
});
try {
  process.exitCode = (await measure()) <= MAX_RATIO ? 0 : 1;
} finally {
  await server.close();
}

/** The p50 of the small tenant beside the large one, in times of that alone. */
async function measure(): Promise<number> {
  const options = {
    dataDirectory: scratch.path,
    database: { url: toDatabaseUrl(server.connection), ownerUrl: toDatabaseUrl(server.ownerConnection) },
  };
  const key = mintKey('service').text;
  await initPlatform(options, key);
  const large = await addTenant(
    '/api/v1/audit-logs?operations=login&limit=100&start_time=2025-12-01T00:00:00Z',
  );
  const small = await addTenant('/api/v1/workspaces');
  await addEvents(large.id);
  await using platform = startPlatform(options);
  const { port } = await platform.ready;
  const load = (tenant: Tenant, clients: number): Promise<Figures> => run(port, tenant, clients);
  await load(small, 1);
  const alone = await load(small, 1);
  const largeAlone = await load(large, readers);
  const [beside, largeBeside] = await Promise.all([load(small, 1), load(large, readers)]);
  const again = await load(small, 1);
  const idleMs = Math.min(alone.p50Ms, again.p50Ms);
  print('small tenant, alone', alone);
  print('small tenant, alone again', again);
  print(`small tenant, beside ${readers} readers`, beside);
  print(`large tenant, ${readers} readers alone`, largeAlone);
  print(`large tenant, ${readers} readers beside`, largeBeside);
  const ratio = beside.p50Ms / idleMs;
  console.log(`p50 beside / alone: ${ratio.toFixed(2)} (at most ${MAX_RATIO})`);
  return ratio;
}

function print(name: string, { p50Ms, perSecond, rejected }: Figures): void {
  const figures = [
    p50Ms.toFixed(2).padStart(9),
    perSecond.toFixed(1).padStart(9),
    String(rejected).padStart(7),
  ];
  console.log(`${name.padEnd(40)} p50 ms ${figures[0]}   responses/s ${figures[1]}   429 ${figures[2]}`);
}

async function addTenant(path: string): Promise<Tenant> {
  const { text, hash, shortKey } = mintKey('service');
  const id = await connectOnce(server.ownerConnection, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `insert into organizations (display_name, plan, config)
       values ($1, 'enterprise', '{"can_use_audit_logs": true}') returning id`,
      [randomBytes(4).toString('hex')],
    );
    const organization = rows[0]?.id ?? '';
    await client.query(
      `with workspace as (insert into workspaces (organization_id, display_name) values ($1, 'one') returning id)
       select from workspace`,
      [organization],
    );
    await client.query(
      `insert into api_keys (kind, organization_id, role, short_key, hash, description)
       values ('service', $1, 'ORGANIZATION_ADMIN', $2, $3, 'neighbours')`,
      [organization, shortKey, hash],
    );
    return organization;
  });
  return { id, key: text, path };
}

function addEvents(organization: string): Promise<unknown> {
  return connectOnce(server.ownerConnection, (client) =>
    client.query(
      `select count(public.audit_append($1, 'create_listener', null, '{}')) from generate_series(1, $2::int)`,
      [organization, events],
    ),
  );
}

async function run(port: number, tenant: Tenant, clients: number): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const endMs = performance.now() + seconds * 1000;
  const durations: number[] = [];
  let rejected = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      const status = await get(agent, port, tenant);
      if (status === 429) rejected += 1;
      else if (status === 200) durations.push(performance.now() - startedMs);
      else throw new Error(`${tenant.path}: status ${status}`);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return {
    p50Ms: percentilesOf([Float64Array.from(durations)]).p50,
    perSecond: durations.length / seconds,
    rejected,
  };
}

function get(agent: Agent, port: number, { path, key }: Tenant): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request({ agent, port, path, headers: { 'X-Api-Key': key } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', reject).end();
  });
}
