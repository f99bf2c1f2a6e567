// The package registries of the operator: what npm and pip of this machine are configured to use. Builds get their addresses, and
// neither credentials nor any other setting of the operator.
import { execFile } from 'node:child_process';
import { isObject, parseJsonDocument } from '../../../base/json/json-document.ts';
import type { Log } from '../../../base/log.ts';

export type Registries = {
  /** `host:port` of each. */
  readonly hosts: readonly string[];
  /** What tells the package managers of a build. */
  readonly env: Readonly<Record<string, string>>;
  /** The file of settings of npm: registries of scopes have names that no variable can have. */
  readonly npmrc: string;
};

const NPM_DEFAULT = 'https://registry.npmjs.org/';
/** Another name of the same registry, which lock files of Yarn have. */
const YARN_DEFAULT = 'https://registry.yarnpkg.com/';
const PIP_DEFAULT = 'https://pypi.org/simple';
/** Where the index above keeps its files. */
const PIP_FILES = 'https://files.pythonhosted.org/';

const TIMEOUT_MS = 30_000;
/** What an operator sets for npm and pip, besides their files in the home directory. */
const OPERATORS = /^(?:PATH|HOME|XDG_CONFIG_(?:HOME|DIRS)|npm_config_.*|PIP_.*|VIRTUAL_ENV)$/i;

const NPM_CONFIG = ['config', 'ls', '--json'];
/** With the Node of the operator: where the settings of all users are depends on it. */
const OF_OPERATOR = ['npm', ...NPM_CONFIG];

/** `npm`: the script of npm, if there is one. What does not respond has its defaults, which the log says. */
export async function readRegistries(
  {
    node,
    npm,
    env,
  }: { readonly node: string; readonly npm: string | undefined; readonly env: NodeJS.ProcessEnv },
  log: Log,
): Promise<Registries> {
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => OPERATORS.test(name)));
  const ask = async (program: string, ...commands: readonly (readonly string[])[]): Promise<string> => {
    for (const command of commands) {
      const output = await outputOf(command, own).catch(() => '');
      if (output !== '') return output;
    }
    if (commands.length > 0)
      log.info({ program }, 'the registries of a package manager are not known: its default is used');
    return '';
  };
  const [ofNpm, ofPip] = await Promise.all([
    ask('npm', ...(npm === undefined ? [] : [OF_OPERATOR, [node, npm, ...NPM_CONFIG]])),
    ask('pip', ['python3', '-m', 'pip', 'config', 'list']),
  ]);
  const registry = Object.entries(own).find(([name]) => name.toLowerCase() === 'npm_config_registry')?.[1];
  if (ofNpm !== '' && registry === undefined && !showsRegistry(ofNpm))
    log.warn(
      'npm does not show its registry, because its URL has a password: builds use the default registry',
    );
  return toRegistries(parseNpmConfig(ofNpm, registry), parsePipConfig(ofPip));
}

export type NpmConfig = { readonly registry: string; readonly scopes: Readonly<Record<string, string>> };
export type PipConfig = { readonly index: string; readonly extra: readonly string[] };

/** `registry`: that of a variable, which npm does not show if its URL has a password. */
export function parseNpmConfig(text: string, registry?: string): NpmConfig {
  const config = toConfig(text);
  const scopes = Object.entries(config).flatMap(([key, value]) => {
    const url = /^@[\w.-]+:registry$/.test(key) ? toAddress(value) : undefined;
    return url === undefined ? [] : [[key, url] as const];
  });
  const own = toAddress(config['registry']) ?? toAddress(registry);
  return { registry: own ?? NPM_DEFAULT, scopes: Object.fromEntries(scopes) };
}

function showsRegistry(text: string): boolean {
  return 'registry' in toConfig(text);
}

function toConfig(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseJsonDocument(text);
  return parsed.ok && isObject(parsed.value) ? parsed.value : {};
}

/** `global.index-url='https://…'`, of a file, or `:env:.index-url='…'`; what comes later counts. */
export function parsePipConfig(text: string): PipConfig {
  const valuesOf = (key: string): readonly string[] => {
    const found = [...text.matchAll(new RegExp(String.raw`^[^=\n]*\.${key}='(.*)'$`, 'gm'))];
    const all = (found.at(-1)?.[1] ?? '').split(/\s+|\\n/).map(toAddress);
    return all.filter((one) => one !== undefined);
  };
  return { index: valuesOf('index-url')[0] ?? PIP_DEFAULT, extra: valuesOf('extra-index-url') };
}

export function toRegistries(npm: NpmConfig, pip: PipConfig): Registries {
  const urls = [npm.registry, ...Object.values(npm.scopes), pip.index, ...pip.extra];
  if (hostOf(npm.registry) === hostOf(NPM_DEFAULT)) urls.push(YARN_DEFAULT);
  if ([pip.index, ...pip.extra].some((url) => hostOf(url) === hostOf(PIP_DEFAULT))) urls.push(PIP_FILES);
  return {
    hosts: [...new Set(urls.map(hostOf))],
    npmrc: Object.entries(npm.scopes)
      .map(([key, url]) => `${key}=${url}\n`)
      .join(''),
    env: {
      ...{ npm_config_registry: npm.registry, YARN_NPM_REGISTRY_SERVER: npm.registry.replace(/\/$/, '') },
      PIP_INDEX_URL: pip.index,
      ...(pip.extra.length > 0 && { PIP_EXTRA_INDEX_URL: pip.extra.join(' ') }),
    },
  };
}

/** Without credentials. Undefined: nothing that a network leads to, such as a directory. */
function toAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  url.username = '';
  url.password = '';
  return url.href;
}

function hostOf(address: string): string {
  const { hostname, port, protocol } = new URL(address);
  return `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
}

function outputOf([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, cwd: '/', timeout: TIMEOUT_MS }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
  });
}
