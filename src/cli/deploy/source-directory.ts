// The directory that is deployed: its graph configuration file, its secrets, and the files of its archive.
import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { isObject } from '../../base/json/json-document.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { readDocument } from '../document.ts';
import { type DeploymentSecrets, readDeploymentSecrets } from './deployment-secrets.ts';
import { findSourceFiles, type SourceFiles } from './source-files.ts';

export type SourceDirectory = DeploymentSecrets & {
  readonly root: string;
  /** Relative to the root, with `/`. */
  readonly configPath: string;
  readonly files: SourceFiles;
};

export type DirectoryFlags = {
  readonly directory: string;
  readonly config: string | undefined;
  readonly secretsFile: string | undefined;
  /** Files of API keys. */
  readonly keyFiles: readonly string[];
  readonly variables: NodeJS.ProcessEnv;
};

/** Throws an InputError for what cannot be deployed. */
export async function readSourceDirectory(flags: DirectoryFlags): Promise<SourceDirectory> {
  const { directory, config = 'langgraph.json', secretsFile, variables } = flags;
  const root = await realpath(directory).catch((cause: unknown) => {
    throw new InputError(`${directory} cannot be read (${String(codeOf(cause))})`, { cause });
  });
  const file = resolve(root, config);
  const configPath = relative(root, file).split(sep).join('/');
  if (configPath.startsWith('../') || configPath === '')
    throw new InputError(`--config must name a file in ${root}: its other files are not packed`);
  const document = await readDocument(file).catch((error: unknown) => {
    if (!(error instanceof InputError) || codeOf(error.cause) !== 'ENOENT') throw error;
    throw new InputError(
      `${file} does not exist: give the directory of a graph configuration file, or name the file with --config`,
      { cause: error },
    );
  });
  if (!isObject(document) || !isObject(document['graphs']) || Object.keys(document['graphs']).length === 0)
    throw new InputError(
      `${file}: graphs must name at least one graph, such as {"agent": "./agent.ts:graph"}`,
    );
  const secrets = await readDeploymentSecrets({
    ...{ secretsFile, declared: document['env'], directory: dirname(file), variables },
  });
  // In the archive they would be stored in plaintext, and the deployment could read them.
  const secret = [secrets.file, secretsFile, ...flags.keyFiles].filter((one) => one !== undefined);
  const leftOut = await Promise.all(secret.map((one) => pathBelow(root, one)));
  const files = await findSourceFiles(root, leftOut);
  if (!files.paths.includes(configPath))
    throw new InputError(
      `${join(root, configPath)} would not be packed: it is a link, or .gitignore or .dockerignore names it`,
    );
  return { ...secrets, root, configPath, files };
}

/** Of a file, with `/`. The root has no links in its path, so the path of the file may have none either. */
async function pathBelow(root: string, file: string): Promise<string> {
  const real = await realpath(file).catch(() => resolve(file));
  return relative(root, real).split(sep).join('/');
}

/** A name that the control plane accepts, of a directory. */
export function nameOf(root: string): string {
  const name = basename(root)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return name === '' ? 'app' : name;
}
