// The graph configuration of a source, read by the rules of the agent server that will run it, before anything is installed.
import { posix } from 'node:path';
import { parseJsonDocument } from '../../../base/json/json-document.ts';
import { placeOf, syntaxMistake } from '../../../base/json/json-mistake.ts';
import { isObject } from '../../../base/json/json-document.ts';
import type { Issue, Loc } from '../../../base/schema.ts';
import { parseEnvFile } from '../../../base/variables/env-file.ts';
import { type GraphFile, parseGraphFile } from '../../agent-server/configuration/graph-file.ts';
import { BuildError, type BuildFailure } from '../build-error.ts';
import { enter } from '../../deployments/command-text.ts';
import { findInSource, readSourceFile } from './source-files.ts';

const DEFAULT_PATH = 'langgraph.json';
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_SHOWN = 10;

export type GraphConfiguration = {
  /** Relative to the root of the source. */
  readonly path: string;
  /** Its directory; empty: the root. */
  readonly directory: string;
  readonly file: GraphFile;
  /** Directories of the source and packages of Python. */
  readonly dependencies: readonly string[];
  /** What has no effect, as sentences. */
  readonly notes: readonly string[];
};

/** Throws a BuildError that names the file, the key and what to do. */
export async function readGraphConfiguration(
  root: string,
  given: string | undefined,
  nodeMajor: number,
): Promise<GraphConfiguration> {
  const path = enter('', given ?? DEFAULT_PATH);
  if (path === undefined || path === '') throw failed(`langgraph_config_path leads outside of the archive`);
  const text = await readSourceFile(root, path, MAX_BYTES);
  if (text === undefined)
    throw failed(
      `There is no ${path} in the archive: pack the directory that holds it, or set langgraph_config_path`,
    );
  const document = parseDocument(path, text);
  const parsed = parseGraphFile(document, nodeMajor);
  if (!parsed.ok) throw failed(describeIssues(path, parsed.issues));
  const parent = posix.dirname(path);
  const directory = parent === '.' ? '' : parent;
  const notes = [
    ...parsed.value.warnings,
    ...(await checkEnvFile(root, { path, directory, file: parsed.value })),
  ];
  return { path, directory, file: parsed.value, dependencies: dependenciesOf(document), notes };
}

/** Throws a BuildError for a file that the configuration names and that is not there. */
export async function requireNamedFiles(
  root: string,
  { path, directory, file }: Pick<GraphConfiguration, 'path' | 'directory' | 'file'>,
  status: BuildFailure,
): Promise<void> {
  const issues: Issue[] = [];
  const named: readonly (readonly [Loc, string])[] = [
    ...Array.from(file.graphs, ([id, { source }]) => [['graphs', id], source.file] as const),
    ...(file.auth === undefined ? [] : [[['auth', 'path'], file.auth.source.file] as const]),
    ...(file.app === undefined ? [] : [[['http', 'app'], file.app.file] as const]),
  ];
  for (const [loc, name] of named) {
    const { kind } = await findInSource(root, posix.resolve(root, directory, name));
    if (kind !== 'found') issues.push({ loc, msg: `${name} ${ABSENT[kind]}`, type: 'value_error' });
  }
  if (issues.length > 0) throw new BuildError(status, describeIssues(path, issues));
}

const ABSENT = {
  missing: 'does not exist: correct the path, which is relative to the configuration file',
  outside: 'is outside of the archive: name a file that is packed with the configuration',
} as const;

function parseDocument(path: string, text: string): unknown {
  const reading = parseJsonDocument(text);
  if (reading.ok) return reading.value;
  const { kind, position } = reading.error;
  const place = placeOf(text, position, MAX_BYTES);
  const where = place === undefined ? '' : `:${place.line}:${place.column}`;
  const mistake =
    kind === 'not_json' && place !== undefined ? `: ${syntaxMistake(text, place.position)}` : '';
  throw failed(`${path}${where}: ${kind === 'not_json' ? 'not valid JSON' : REFUSED[kind]}${mistake}`);
}

const REFUSED = {
  repeated_name: 'this name occurs twice in one object',
  too_deep: 'nested deeper than 32 levels',
  too_many_names: 'more names than any configuration has',
  too_many_values: 'more values than any configuration has',
} as const;

function dependenciesOf(document: unknown): readonly string[] {
  const given = isObject(document) ? document['dependencies'] : undefined;
  return Array.isArray(given) ? given.filter((one) => typeof one === 'string') : [];
}

/** Commands that deploy leave it out of the archive, because they send its content as secrets. */
async function checkEnvFile(
  root: string,
  { path, directory, file }: Pick<GraphConfiguration, 'path' | 'directory' | 'file'>,
): Promise<readonly string[]> {
  if (typeof file.env !== 'string') return [];
  const full = posix.resolve(root, directory, file.env);
  if ((await findInSource(root, full)).kind === 'outside')
    throw failed(describeIssues(path, [{ loc: ['env'], msg: ABSENT.outside, type: 'value_error' }]));
  const text = await readSourceFile(root, full, MAX_BYTES);
  if (text === undefined) return [`${file.env} is not in the archive: the deployment has its secrets alone`];
  const parsed = parseEnvFile(text);
  if ('values' in parsed) return [];
  throw failed(`${file.env}:${parsed.line}: ${parsed.msg}`);
}

function describeIssues(path: string, issues: readonly Issue[]): string {
  const shown = issues
    .slice(0, MAX_SHOWN)
    .map(({ loc, msg }) => `${[path, toText(loc)].filter(Boolean).join(': ')}: ${msg}`);
  return [...shown, ...(issues.length > MAX_SHOWN ? [`and ${issues.length - MAX_SHOWN} more`] : [])].join(
    '; ',
  );
}

function toText(loc: Loc): string {
  return loc
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : at === 0 ? part : `.${part}`))
    .join('');
}

function failed(message: string): BuildError {
  return new BuildError('CREATE_FAILED', message);
}
