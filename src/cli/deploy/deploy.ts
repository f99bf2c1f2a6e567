// `sallyport deploy`: deploys a directory by the public API of a platform, and lists, shows, rolls back and deletes deployments.
import { InputError } from '../../base/input-error.ts';
import { toLocKey } from '../../base/schema.ts';
import { missing, parseCommandLine, unexpected, type Values } from '../command/declaration.ts';
import { connectionOptions, deployCommand } from '../command/deploy-command.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';
import { unknownVariableWarnings } from '../unknown-variables.ts';
import { isExposed, namedKeyFiles, readConnection } from './connection.ts';
import { ControlPlane, type Deployment } from './control-plane.ts';
import { printDeployments } from './deployment-list.ts';
import { deployDirectory } from './directory-deployment.ts';
import { printLogs } from './log-reading.ts';
import { createOutput, firstLineOf, formatTable, type Output } from './output.ts';
import { describeRejection, type FieldNames } from './rejected-call.ts';
import { waitForRevision } from './revision-waiting.ts';
import { readSourceDirectory } from './source-directory.ts';

type Flags = Values<typeof deployCommand.options>;
type Option = keyof Flags & string;

type Given = {
  readonly plane: ControlPlane;
  readonly flags: Flags;
  readonly operands: readonly string[];
  readonly output: Output;
};

type Action = {
  readonly options: readonly Option[];
  /** What follows its name. */
  readonly operands: readonly [least: number, most: number];
  readonly run: (given: Given) => Promise<number>;
  /** In which fields of the API it sends what it was given. */
  readonly fields?: FieldNames;
};

const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ['list', { options: [], operands: [0, 0], run: list }],
  ['revisions', { options: [], operands: [1, 1], run: listRevisions }],
  [
    'logs',
    {
      options: ['build', 'follow', 'revision', 'level'],
      operands: [1, 1],
      run: logs,
      fields: { level: '--level', revision_id: '--revision' },
    },
  ],
  [
    'rollback',
    { options: ['no-wait'], operands: [1, 2], run: rollback, fields: { revision_id: 'REVISION' } },
  ],
  ['delete', { options: ['yes'], operands: [1, 1], run: remove }],
]);

const DEPLOYING: Action = {
  options: ['name', 'config', 'secrets-file', 'proxy-profile', 'install-command', 'build-command', 'no-wait'],
  operands: [0, 1],
  run: deploy,
  fields: {
    name: '--name',
    langgraph_config_path: '--config',
    install_command: '--install-command',
    build_command: '--build-command',
    proxy_profile_id: '--proxy-profile',
  },
};

const OF_ALL: readonly string[] = ['json', ...Object.keys(connectionOptions)];

/** Exit code 0: done; 1: something failed; 2: something must be corrected. */
export async function run(args: readonly string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  refuseEnvFile(args);
  const { values: flags, operands: all } = parseCommandLine(deployCommand, args);
  const [name, ...rest] = all;
  const named = name === undefined ? undefined : ACTIONS.get(name);
  const action = named ?? DEPLOYING;
  const operands = named === undefined ? all : rest;
  checkArguments(named === undefined ? 'deploy DIR' : `deploy ${name}`, action, operands, flags);
  const connection = await readConnection(flags, process.env);
  for (const warning of unknownVariableWarnings(process.env)) process.stderr.write(`sallyport: ${warning}\n`);
  if (isExposed(connection))
    process.stderr.write(
      `sallyport: warning: the API key is sent to ${connection.url.origin} in plaintext: use https\n`,
    );
  const output = createOutput(flags.json ?? false);
  try {
    return await action.run({ plane: new ControlPlane(connection), flags, operands, output });
  } catch (error) {
    throw describeRejection(error, action.fields ?? {});
  }
}

/** Node reads this option itself, wherever it is, and starts with the NODE_OPTIONS of the file, whoever wrote it. */
function refuseEnvFile(args: readonly string[]): void {
  const given = args.find((arg) => /^--env-file(?:-if-exists)?(?:=|$)/.test(arg));
  if (given !== undefined)
    throw new InputError(`${given.replace(/=.*/s, '')} is an option of Node: give --secrets-file FILE`);
}

/** Throws an InputError: an option that has no effect was meant to have one. */
function checkArguments(
  shown: string,
  { options, operands }: Action,
  given: readonly string[],
  flags: Flags,
) {
  const [least, most] = operands;
  if (given.length < least) throw missing(deployCommand, `NAME: ${shown} NAME`);
  if (given.length > most) throw unexpected(deployCommand, given[most] ?? '');
  const foreign = Object.keys(flags).find(
    (name) => !OF_ALL.includes(name) && !options.includes(name as Option),
  );
  if (foreign === undefined) return;
  const owners = [['DIR', DEPLOYING] as const, ...ACTIONS].filter(([, one]) =>
    one.options.includes(foreign as Option),
  );
  throw new InputError(
    `--${foreign} is no option of ${shown}: it belongs to ${owners.map(([name]) => `deploy ${name}`).join(' and ')}`,
  );
}

async function deploy({ plane, flags, operands: [directory = '.'], output }: Given): Promise<number> {
  const source = await readSourceDirectory({
    ...{ directory, config: flags.config, secretsFile: flags['secrets-file'], variables: process.env },
    keyFiles: namedKeyFiles(flags, process.env),
  });
  const chosen = {
    ...{ name: flags.name, proxyProfile: flags['proxy-profile'], waits: flags['no-wait'] !== true },
    ...{ installCommand: flags['install-command'], buildCommand: flags['build-command'] },
  };
  return deployDirectory(plane, source, chosen, output);
}

async function list({ plane, output }: Given): Promise<number> {
  await printDeployments(plane, output);
  return 0;
}

async function listRevisions({ plane, operands: [name = ''], output }: Given): Promise<number> {
  const deployment = await find(plane, name);
  const all = await plane.revisions(deployment.id, 100);
  const rows = all.map(({ id, status, created_at: created = '-', status_reason: reason }) => {
    const isReplaced = status === 'DEPLOYED' && id !== deployment.active_revision_id;
    return [id, isReplaced ? 'REPLACED' : status, created, firstLineOf(reason ?? '')];
  });
  output.result(all, formatTable(['REVISION', 'STATUS', 'CREATED', 'REASON'], rows));
  return 0;
}

async function logs({ plane, flags, operands: [name = ''], output }: Given): Promise<number> {
  const { build = false, follow = false, revision, level } = flags;
  await printLogs(plane, await find(plane, name), { build, follow, revision, level }, output);
  return 0;
}

async function rollback({ plane, flags, operands: [name = '', given], output }: Given): Promise<number> {
  const deployment = await find(plane, name);
  const target = given ?? (await findFormer(plane, deployment));
  output.progress(`deploying the revision ${target} of ${deployment.name} again`);
  const changed = await plane.redeploy(deployment, target);
  const revisionId = changed.latest_revision_id ?? target;
  if (flags['no-wait'] !== true) return waitForRevision(plane, changed, revisionId, { output });
  output.result({ deployment_id: changed.id, name, revision_id: revisionId }, [revisionId]);
  return 0;
}

/** The newest revision that was deployed before the active one. */
async function findFormer(plane: ControlPlane, deployment: Deployment): Promise<string> {
  const all = await plane.revisions(deployment.id, 100);
  const active = all.findIndex(({ id }) => id === deployment.active_revision_id);
  const former = all.slice(active + 1).find(({ status }) => status === 'DEPLOYED');
  if (former === undefined)
    throw new InputError(`no revision of ${deployment.name} was deployed before the active one`);
  return former.id;
}

async function remove({ plane, flags, operands: [name = ''], output }: Given): Promise<number> {
  if (flags.yes !== true)
    throw new InputError('delete removes the deployment with its threads and runs for good: give --yes');
  const { id, name: found } = await find(plane, name);
  await plane.delete(id);
  output.result({ deployment_id: id, name: found, deleted: true }, [`deleted ${found} (${id})`]);
  return 0;
}

const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

async function find(plane: ControlPlane, name: string): Promise<Deployment> {
  const found = await plane.findByName(name);
  if (found !== undefined) return found;
  if (ID.test(name)) return plane.get(name);
  throw new InputError(`there is no deployment ${toLocKey(name)}: \`sallyport deploy list\` shows all`);
}
