// What a storm of deployments finds on its machine and on its database server, in comparison with what the rows of the platform say: each
// process, directory, host user, group of the kernel, database and role must belong to something that there is.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { connectOnce } from '../../../src/platform/store/database.ts';
import type { StormPlatform } from './deployment-storm-platform.ts';

type Process = {
  readonly pid: number;
  readonly parent: number;
  readonly args: readonly string[];
  /** Paths of its groups. */
  readonly groups: string;
};

type Rows = {
  readonly deployments: readonly {
    readonly id: string;
    readonly name: string;
    readonly status: string;
    readonly active: string | null;
    readonly runner: string | null;
  }[];
  readonly pending: readonly { readonly id: string; readonly status: string }[];
  readonly builds: readonly { readonly id: string; readonly isReady: boolean }[];
  readonly runners: readonly string[];
  readonly noted: readonly string[];
  readonly databases: readonly string[];
  readonly roles: readonly string[];
};

/** Where everything that gives out host users on a machine writes them down. */
const REGISTRIES: readonly string[] = ['/var/lib/sallyport-boxes', '/run/sallyport-host-users'];
const GROUPS = '/sys/fs/cgroup';

/** In words; empty: what the rows say is what there is, and nothing more. */
export async function findDisagreements(platform: StormPlatform): Promise<readonly string[]> {
  const rows = await readRows(platform);
  const processes = readProcesses();
  const agents = agentServersOf(platform, processes);
  const ids = rows.deployments.map(({ id }) => id);
  const active = rows.deployments.filter((one) => one.active !== null);
  const wanted = active.length;
  const root = join(platform.data, 'runner');
  const private_ = join(root, 'workloads', 'private');
  const workloads = namesIn(join(root, 'workloads', 'w'));
  const names = ids.map((id) => `sallyport_d_${id.replaceAll('-', '')}`);
  return [
    ...rows.pending.map(({ id, status }) => `the revision ${id} is ${status}`),
    ...rows.deployments
      .filter(({ status }) => status !== 'READY')
      .map((one) => `${one.name} is ${one.status}`),
    ...rows.deployments
      .filter(({ runner }) => runner === null || !rows.runners.includes(runner))
      .map(({ name }) => `${name} has no runner`),
    ...(rows.runners.length === 1 || wanted === 0 ? [] : [`there are ${rows.runners.length} runners`]),
    ...(agents.length === wanted ? [] : [`${agents.length} agent servers run, and ${wanted} should`]),
    ...findOrphans(platform, processes),
    ...differ('the directory of an agent server', namesIn(join(root, 'run')), agents),
    ...differ('the directory of a workload', workloads, agents),
    ...differ(
      'the record of a workload',
      namesIn(join(private_, 'records')),
      agents.map((id) => `${id}.json`),
    ),
    ...differ('the socket of a database', namesIn(join(root, 'db')), ids.map(toSocketName)),
    ...differ('the database', rows.databases, names),
    ...differ('the role', rows.roles, names),
    ...differ('the row of a database', rows.noted, names),
    ...notAmong('the directory of a build', namesIn(join(root, 'builds', 'builds')), readyBuilds(rows)),
    ...notAmong('an installation', namesIn(join(root, 'builds', 'installations')), []),
    ...namesIn(join(root, 'builds', 'packages'))
      .filter((name) => name.startsWith('.'))
      .map((name) => `packages: ${name}`),
    ...findUsers(private_, ids),
    ...findGroups(private_, agents),
    ...findSidecars(private_, processes),
  ];
}

function readyBuilds({ builds }: Rows): readonly string[] {
  return builds.filter(({ isReady }) => isReady).map(({ id }) => id);
}

/** As the runner names the directory of a database. */
function toSocketName(deploymentId: string): string {
  return deploymentId.replaceAll('-', '').slice(0, 16);
}

async function readRows({ owner }: StormPlatform): Promise<Rows> {
  return connectOnce(owner, async (client) => {
    const read = async <T>(text: string): Promise<readonly T[]> => (await client.query(text)).rows as T[];
    const named = async (text: string): Promise<readonly string[]> =>
      (await read<{ readonly name: string }>(text)).map(({ name }) => name);
    return {
      deployments: await read(
        'select id, name, status, active_revision_id as active, runner_id as runner from deployments order by id',
      ),
      pending: await read(`select id, status from revisions where status in ('QUEUED', 'AWAITING_BUILD',
        'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'UNKNOWN')`),
      builds: await read('select id, directory is not null and removed_at is null as "isReady" from builds'),
      runners: await named('select id::text as name from runners'),
      noted: await named('select name from runner_databases'),
      databases: await named(
        `select datname as name from pg_database where datname like 'sallyport\\_d\\_%'`,
      ),
      roles: await named(`select rolname as name from pg_roles where rolname like 'sallyport\\_d\\_%'`),
    };
  });
}

export function readProcesses(): ReadonlyMap<number, Process> {
  const found = new Map<number, Process>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
      // Whoever has ended and was not waited for runs nothing.
      if (stat[0] === 'Z' || stat[0] === 'X') continue;
      const args = readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0').slice(0, -1);
      const groups = readFileSync(`/proc/${name}/cgroup`, 'latin1');
      found.set(Number(name), { pid: Number(name), parent: Number(stat[1]), args, groups });
    } catch {
      // It has just ended.
    }
  }
  return found;
}

/** The ids of agent servers that run. */
export function agentServersOf(
  { data }: Pick<StormPlatform, 'data'>,
  processes: ReadonlyMap<number, Process>,
): readonly string[] {
  const ids = [...processes.values()].flatMap((one) => agentIdOf(data, one) ?? []);
  return [...new Set(ids)];
}

/** Of the program itself, not of what has started it. */
export function agentPidsOf({ data }: Pick<StormPlatform, 'data'>): readonly number[] {
  return [...readProcesses().values()]
    .filter((one) => agentIdOf(data, one) !== undefined)
    .map(({ pid }) => pid);
}

function agentIdOf(data: string, { args }: Process): string | undefined {
  const at = args.indexOf('agent-server');
  // Its second argument is the launcher: before it is executed, a shell has it among others.
  if (at !== 2) return undefined;
  const directory = args[args.indexOf('--data-dir') + 1] ?? '';
  const prefix = join(data, 'runner', 'run', '/');
  return directory.startsWith(prefix) ? directory.slice(prefix.length).split('/')[0] : undefined;
}

/** Processes of the data directory, or in a group of its workloads, that are not below the platform. */
function findOrphans(platform: StormPlatform, processes: ReadonlyMap<number, Process>): readonly string[] {
  const isBelow = (pid: number): boolean => {
    for (let at = processes.get(pid); at !== undefined; at = processes.get(at.parent))
      if (at.pid === platform.pid) return true;
    return false;
  };
  const group = groupNameOf(join(platform.data, 'runner', 'workloads', 'private'));
  return [...processes.values()]
    .filter(({ args, groups }) => groups.includes(group) || args.some((one) => one.includes(platform.data)))
    .filter(({ pid }) => !isBelow(pid))
    .map(({ pid, args }) => `the process ${pid} (${args.join(' ').slice(0, 120)}) is an orphan`);
}

/** As the workloads of a process name the group that holds theirs. */
function groupNameOf(directory: string): string {
  return `sallyport-workloads-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
}

function findGroups(directory: string, agents: readonly string[]): readonly string[] {
  return findFolders(GROUPS, groupNameOf(directory), 6).flatMap((path) =>
    notAmong(`in ${path} the group`, foldersIn(path), agents),
  );
}

function findFolders(directory: string, name: string, depth: number): readonly string[] {
  if (depth === 0) return [];
  return foldersIn(directory).flatMap((one) =>
    one === name ? [join(directory, one)] : findFolders(join(directory, one), name, depth - 1),
  );
}

function foldersIn(directory: string): readonly string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}

/** Each deployment has a host user, and nobody else. */
function findUsers(directory: string, ids: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return [];
  const text = existsSync(join(directory, 'users.json'))
    ? readFileSync(join(directory, 'users.json'), 'utf8')
    : '{}';
  const owners: Readonly<Record<string, number>> = JSON.parse(text);
  const place = REGISTRIES.find((one) => existsSync(join(one, 'users')));
  if (place === undefined) return [];
  const registry = new DatabaseSync(join(place, 'users'), { readOnly: true });
  try {
    const rows = registry.prepare('select uid from users where owner = ?').all(directory);
    return [
      ...differ('the host user of', Object.keys(owners), ids),
      ...differ(
        'the registered host user',
        rows.map(({ uid }) => String(uid)),
        Object.values(owners).map(String),
      ),
    ];
  } finally {
    registry.close();
  }
}

/** A sidecar has files, with tokens and the key of its CA, as long as it runs. */
function findSidecars(directory: string, processes: ReadonlyMap<number, Process>): readonly string[] {
  const keys = namesIn(join(directory, 'sidecars'));
  const running = keys.filter((key) =>
    [...processes.values()].some(({ args }) =>
      args.includes(join(directory, 'sidecars', key, 'config.json')),
    ),
  );
  const sockets = namesIn(directory).filter((name) => /^s-[0-9a-f]{12}$/.test(name));
  return [
    ...notAmong('the files of the sidecar', keys, running),
    ...(sockets.length === running.length
      ? []
      : [`${running.length} sidecars run, and ${sockets.length} have a socket`]),
  ];
}

function differ(what: string, present: readonly string[], expected: readonly string[]): readonly string[] {
  return [
    ...notAmong(what, present, expected),
    ...expected.filter((one) => !present.includes(one)).map((one) => `${what} ${one} is missing`),
  ];
}

function notAmong(what: string, present: readonly string[], expected: readonly string[]): readonly string[] {
  return present.filter((one) => !expected.includes(one)).map((one) => `${what} ${one} is left`);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
