// Runs the rows one after the other: behind `run`, without it, where asked behind `proxy` with a token, and with the cure.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientRow, Command } from './client-row.ts';
import { runUntil } from './client-run.ts';
import { bareEnvironment, toShellLine } from './command-line.ts';
import type { Missing } from './installation/installer.ts';
import type { RequestLedger } from './origin/request-ledger.ts';
import { behindRun, type ProxyFiles, readRecords, type TokenProxy } from './proxy-modes.ts';
import {
  findReason,
  httpVersions,
  isSilentHang,
  lastWords,
  type Observation,
  type Use,
  usesOf,
} from './verdict.ts';

export type RowResult = {
  readonly row: ClientRow;
  readonly version: string;
  /** Why it was not run. */
  readonly skipped?: string;
  /** Why it is not green with what `run` sets. */
  readonly reason?: string | undefined;
  readonly uses: { readonly proxy: Use; readonly ca: Use };
  readonly http: string;
  readonly streamed: boolean;
  readonly isGreenWithoutRun: boolean;
  readonly isSilent: boolean;
  /** Why the cure does not help; undefined if it does. */
  readonly cureReason?: string | undefined;
  /** Why it is not green behind `proxy` with a token. */
  readonly tokenReason?: string | undefined;
};

export type Scene = {
  readonly files: ProxyFiles;
  readonly ledger: RequestLedger;
  readonly tokenProxy: TokenProxy | undefined;
};

const DEADLINE_SECONDS = 30;
/** Without the proxy many clients retry for a minute. */
const DIRECT_DEADLINE_SECONDS = 8;
const VERSION_DEADLINE_SECONDS = 20;

export async function runRow(row: ClientRow, scene: Scene, missing: Missing): Promise<RowResult> {
  const skipped = row.needs.map((name) => missing.get(name)).find((reason) => reason !== undefined);
  const nothing = { uses: { proxy: 'unknown', ca: 'unknown' } as const, http: '', streamed: false };
  const absent = { ...nothing, isGreenWithoutRun: false, isSilent: false };
  if (skipped !== undefined) return { row, version: '', skipped, ...absent };
  const version = await readVersion(row, scene);
  if (version === undefined) {
    const reason = 'its program does not start: the command for its version failed';
    return { row, version: '', skipped: reason, ...absent };
  }
  const observed = await observe(row, scene, { mode: 'run', command: row.command });
  const direct = await observe(row, scene, { mode: 'direct', command: row.command });
  const reason = findReason({ requests: row.requests, streams: row.streams }, observed);
  const cure = await tryCure(row, scene, reason);
  const shown = cure?.observed ?? observed;
  return {
    row,
    version,
    reason,
    uses: usesOf(observed),
    http: httpVersions(shown.seen),
    streamed: row.streams === true && (reason === undefined || cure?.reason === undefined),
    isGreenWithoutRun: findReason({}, direct) === undefined,
    isSilent: isSilentHang(observed),
    cureReason: cure?.reason,
    tokenReason: await tryToken(row, scene),
  };
}

async function tryCure(row: ClientRow, scene: Scene, reason: string | undefined) {
  const { cure } = row;
  if (reason === undefined || cure === undefined) return undefined;
  if (cure.command === undefined && cure.settings === undefined) return undefined;
  const command = cure.command ?? row.command;
  const observed = await observe({ ...row, settings: { ...row.settings, ...cure.settings } }, scene, {
    mode: 'run',
    command,
  });
  return { observed, reason: findReason({ requests: row.requests, streams: row.streams }, observed) };
}

async function tryToken(row: ClientRow, scene: Scene): Promise<string | undefined> {
  if (row.token !== true || scene.tokenProxy === undefined) return undefined;
  const observed = await observe(row, scene, { mode: 'token', command: row.command });
  return findReason({ requests: row.requests, streams: row.streams }, observed);
}

type Way = { readonly mode: 'run' | 'direct' | 'token'; readonly command: Command };

async function observe(row: ClientRow, scene: Scene, { mode, command }: Way): Promise<Observation> {
  const scratch = freshFolder(scene);
  const shell = ['bash', '-c', toShellLine(command, scratch)];
  const behind = mode === 'run' ? behindRun(scene.files, shell) : undefined;
  const variables = mode === 'token' ? scene.tokenProxy?.variables : undefined;
  // A request that came late, of a process that was killed, belongs to no row.
  scene.ledger.take();
  const { ending, output } = await runUntil(behind?.command ?? shell, {
    env: { ...bareEnvironment(row.settings, scratch), ...variables },
    cwd: scratch,
    deadlineSeconds: mode === 'direct' ? DIRECT_DEADLINE_SECONDS : (row.deadlineSeconds ?? DEADLINE_SECONDS),
  });
  const records = behind === undefined ? undefined : readRecords(behind.log);
  return { ending, output, seen: scene.ledger.take(), records };
}

/** The first number with a dot that the command prints; undefined if it fails. */
async function readVersion(row: ClientRow, scene: Scene): Promise<string | undefined> {
  const scratch = freshFolder(scene);
  const { ending, output } = await runUntil(['bash', '-c', toShellLine(row.version, scratch)], {
    env: bareEnvironment(row.settings, scratch),
    cwd: scratch,
    deadlineSeconds: VERSION_DEADLINE_SECONDS,
  });
  const version = /\d+(?:\.\d+)+/.exec(output)?.[0];
  if (ending.kind === 'exited' && ending.code === 0 && version !== undefined) return version;
  console.log(`      the version of ${row.name} cannot be read${lastWords(output)}`);
  return undefined;
}

function freshFolder({ files }: Scene): string {
  const scratch = join(files.folder, 'scratch');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(join(scratch, 'home'), { recursive: true });
  return scratch;
}
