// How the packages of a source are installed where it does not say so itself: by the lock file that it has, else by package.json.
// Whether what is installed may be used again is decided here too. Pure.
import { isObject, type JsonRules, parseJsonDocument, STRICT } from '../../../base/json/json-document.ts';
import type { PlannedCommand } from '../../deployments/command-text.ts';

/** Files of one directory by name, those of `manifestNames` that it has. */
export type Manifests = ReadonlyMap<string, string>;

export const manifestNames: readonly string[] = [
  ...['package.json', 'pnpm-lock.yaml', 'yarn.lock', 'package-lock.json', 'npm-shrinkwrap.json'],
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', 'pnpm-workspace.yaml', '.pnpmfile.cjs', 'binding.gyp'],
];

export type InstallPlan = {
  readonly command: PlannedCommand;
  /** In words for the log of the build. */
  readonly reason: string;
  /** What is installed depends on these files and on nothing else. Undefined: on other files of the source too. */
  readonly inputs: Manifests | undefined;
};

/** Undefined: there is nothing to install. */
export function planInstall(manifests: Manifests, directory: string): InstallPlan | undefined {
  const lock = LOCKS.find(({ name }) => manifests.has(name));
  const chosen = lock ?? (manifests.has('package.json') ? WITHOUT_LOCK : undefined);
  if (chosen === undefined) return undefined;
  const text = manifests.get(chosen.name) ?? '';
  const { words, env = {} } = chosen.plan(text, packageManagerOf(manifests));
  const isAlone = lock !== undefined && isSelfContained(manifests, text);
  return {
    command: { words, directory, env },
    reason: lock === undefined ? 'package.json, without a lock file' : lock.name,
    inputs: isAlone ? manifests : undefined,
  };
}

type Installer = { readonly words: readonly string[]; readonly env?: Readonly<Record<string, string>> };
type Manager = { readonly name: string; readonly version: string } | undefined;

/** In this order: the first that is there decides. */
const LOCKS: readonly {
  readonly name: string;
  readonly plan: (text: string, manager: Manager) => Installer;
}[] = [
  { name: 'pnpm-lock.yaml', plan: planPnpm },
  { name: 'yarn.lock', plan: planYarn },
  { name: 'npm-shrinkwrap.json', plan: () => ({ words: ['npm', 'ci', ...QUIET] }) },
  { name: 'package-lock.json', plan: () => ({ words: ['npm', 'ci', ...QUIET] }) },
];

const QUIET = ['--no-audit', '--no-fund'] as const;
const WITHOUT_LOCK: (typeof LOCKS)[number] = {
  name: 'package.json',
  plan: () => ({ words: ['npm', 'install', ...QUIET] }),
};

/** npm comes with Node; the others are packages, taken from the registry in the version that the source names or its lock needs. */
const fetched = (name: string, version: string): readonly string[] => [
  ...['npm', 'exec', '--yes', `--package=${name}@${version}`, '--'],
];

function planPnpm(lock: string, manager: Manager): Installer {
  const [, format = ''] = /^lockfileVersion: *'?(\d+)/m.exec(lock) ?? [];
  const version = manager?.name === 'pnpm' ? manager.version : (PNPM_OF_FORMAT[format] ?? '10');
  return {
    words: [...fetched('pnpm', version), 'pnpm', 'install', '--frozen-lockfile'],
    // Files of the store would be shared with what is installed.
    env: { npm_config_package_import_method: 'copy' },
  };
}

const PNPM_OF_FORMAT: Readonly<Record<string, string>> = { 5: '7', 6: '8', 9: '10' };

function planYarn(lock: string, manager: Manager): Installer {
  const own = manager?.name === 'yarn' ? manager.version : undefined;
  const isClassic = own === undefined ? !/^__metadata:/m.test(lock) : own.startsWith('1.');
  if (isClassic)
    return {
      words: [
        ...fetched('yarn', own ?? '1.22.22'),
        'yarn',
        'install',
        '--frozen-lockfile',
        '--non-interactive',
      ],
    };
  return {
    words: [...fetched('@yarnpkg/cli-dist', own ?? '4'), 'yarn', 'install', '--immutable'],
    // Node finds packages in directories; archives need a loader that the agent server does not have.
    env: { YARN_NODE_LINKER: 'node-modules', YARN_ENABLE_TELEMETRY: '0', YARN_ENABLE_GLOBAL_CACHE: '0' },
  };
}

/** `packageManager` of package.json: `pnpm@10.2.0+sha512.…` */
function packageManagerOf(manifests: Manifests): Manager {
  const text = packageOf(manifests)?.['packageManager'];
  if (typeof text !== 'string') return undefined;
  const [, name, version] = /^([a-z]+)@(\d+\.\d+\.\d+(?:-[\w.]+)?)(?:\+|$)/.exec(text) ?? [];
  return name === undefined || version === undefined ? undefined : { name, version };
}

/** Undefined: there is none, or the package managers will say what is wrong with it. */
function packageOf(manifests: Manifests): Readonly<Record<string, unknown>> | undefined {
  const parsed = parseJsonDocument(manifests.get('package.json') ?? '', AS_NODE_READS_IT);
  return parsed.ok && isObject(parsed.value) ? parsed.value : undefined;
}

const AS_NODE_READS_IT: JsonRules = { ...STRICT, mayRepeatNames: true };

/** Scripts of the source that an installation runs: they read and write whatever they want. */
const OWN_SCRIPTS = [
  ...['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare'],
  ...['dependencies', 'pnpm:devPreinstall'],
];
/** Programs and settings beside the manifests. */
const OWN_CODE = ['.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs', 'binding.gyp'];
/** Packages that are directories or files of the source. */
const OWN_PACKAGES = /\b(?:file|link|portal|workspace|patch):|"link": *true|patchedDependencies/;

function isSelfContained(manifests: Manifests, lock: string): boolean {
  const own = packageOf(manifests);
  if (own === undefined || own['workspaces'] !== undefined) return false;
  if (OWN_CODE.some((name) => manifests.has(name))) return false;
  const scripts = isObject(own['scripts']) ? own['scripts'] : {};
  if (OWN_SCRIPTS.some((name) => name in scripts)) return false;
  if (/^packages:/m.test(manifests.get('pnpm-workspace.yaml') ?? '')) return false;
  const npmrc = manifests.get('.npmrc') ?? '';
  // A setting may name a file of the source, or a variable.
  if (/[$]|(?:file|path|prefix|script|global|store|cache|userconfig)/i.test(npmrc)) return false;
  // A lock file of a newer Yarn lists the source itself.
  const others = lock.replaceAll(/@workspace:\.(?=["\s,])/g, '');
  const texts = [others, manifests.get('package.json') ?? '', manifests.get('pnpm-workspace.yaml') ?? ''];
  return !texts.some((text) => OWN_PACKAGES.test(text));
}
