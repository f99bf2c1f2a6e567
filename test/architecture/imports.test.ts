// The import rules. The tables in this file are the rules; ARCHITECTURE.md shows them.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { modules } from '../../src/platform/modules.ts';
import { projectRoot } from '../support/spawned-process.ts';
import { packageOf, readSources, type SourceFile, toSourceFile } from './source-tree.ts';

/** The modules of the platform: of another one, a module imports its `contract.ts` and nothing else. The agent server is a program of its own. */
const MODULES: readonly string[] = [
  ...globSync('src/platform/*/module.ts', { cwd: projectRoot }).map((path) =>
    path.slice('src/'.length, -'/module.ts'.length),
  ),
  'platform/agent-server',
];

/** What every module of the platform is built on. */
const BELOW_MODULES: readonly string[] = [
  'base',
  'platform/store',
  'platform/identity',
  'platform/audit',
  'platform/vault',
  'platform/runtime',
  'platform/proxy-documents',
  'platform/api',
];

/** What a sidecar needs to read rules and HTTP. */
const VOCABULARY: readonly string[] = ['base', 'policy', 'http1', 'tls', 'callback'];

/** The files at the top of src/proxy, from the lowest: each stage may use them. */
const PROXY_GROUND: readonly string[] = ['proxy/limits', 'proxy/record', 'proxy/refusal', 'proxy/counters'];

/** What the files of a module may import besides their own module. Everything points down. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  'base/http': ['base'],
  'base/html': [],
  'base/archive': ['base'],
  policy: ['base', 'policy/authority', 'policy/match', 'policy/document'],
  'policy/authority': ['base'],
  'policy/match': ['base', 'policy/authority'],
  'policy/document': ['base', 'policy/authority', 'policy/match'],
  http1: ['base'],
  tls: ['base'],
  callback: ['base', 'policy', 'http1', 'tls'],
  'proxy/limits': VOCABULARY,
  'proxy/record': VOCABULARY,
  'proxy/refusal': [...VOCABULARY, 'proxy/refusal-catalogue'],
  'proxy/refusal-catalogue': [],
  'proxy/counters': [...VOCABULARY, 'proxy/record', 'proxy/refusal-catalogue'],
  'proxy/upstream': [...VOCABULARY, ...PROXY_GROUND, 'proxy/idle-watch'],
  'proxy/mask': [...VOCABULARY, ...PROXY_GROUND],
  'proxy/local': [...VOCABULARY, ...PROXY_GROUND],
  'proxy/context': [...VOCABULARY, ...PROXY_GROUND, 'proxy/upstream', 'proxy/local'],
  'proxy/idle-watch': [],
  'proxy/paused-client': [],
  'proxy/forwarded-pieces': [],
  'proxy/splice': [
    'proxy/context',
    'proxy/counters',
    'proxy/forwarded-pieces',
    'proxy/idle-watch',
    'proxy/paused-client',
  ],
  'proxy/gate': [...VOCABULARY, ...PROXY_GROUND, 'proxy/upstream', 'proxy/mask', 'proxy/context'],
  ...versions('proxy/h1', 'proxy/h2'),
  'proxy/tunnel': [...belowTunnel(), 'proxy/h1', 'proxy/h2'],
  'proxy/accept': [...belowTunnel(), 'proxy/h1', 'proxy/tunnel'],
  admin: ['base'],
  sidecar: [...VOCABULARY, 'proxy', 'admin'],
  cli: [...VOCABULARY, 'proxy', 'sidecar', 'box-host', 'platform', 'platform/config', 'platform/programs'],
  main: ['base', 'cli', 'sidecar'],
  library: [...VOCABULARY, 'sidecar', 'cli'],
  'box-host': [
    'base',
    'base/http',
    'tls',
    'box-agent/protocol',
    'box-host/agents',
    'box-host/data-plane',
    'box-host/command',
    'box-host/snapshots',
    'box-host/cgroup',
    'box-host/bubblewrap',
  ],
  // Knows nothing of boxes, and shares what isolates and limits them.
  workload: ['base', 'tls', 'box-host'],
  gateway: ['base', 'base/http', 'http1'],
  // A box sees the folder of the agent and nothing else of the product.
  'box-agent/protocol': [],
  'box-agent': ['box-agent/protocol'],
  // A program in a process of its own, with code of a deployment.
  'agent-worker/protocol': [],
  'agent-worker': ['agent-worker/protocol'],
  'box-host/command': [],
  'box-host/snapshots': ['base', 'box-host/command'],
  'box-host/cgroup': [],
  'box-host/bubblewrap': ['base', 'tls', 'box-host/command', 'box-host/snapshots', 'box-host/cgroup'],
  'box-host/agents': ['base', 'box-agent/protocol'],
  'box-host/data-plane': ['base', 'base/http', 'box-agent/protocol', 'box-host/agents'],
  'platform/store': ['base'],
  'platform/store/embedded': ['base', 'platform/store'],
  'platform/identity': ['base', 'platform/store'],
  'platform/audit': ['base', 'platform/store'],
  'platform/vault': ['base', 'platform/store'],
  'platform/runtime': ['base', 'base/http'],
  // The only folder of the platform that knows the rules of the proxy.
  'platform/proxy-documents': ['base', 'policy', 'platform/store', 'platform/vault'],
  'platform/api': ['base', 'base/http', 'platform/store', 'platform/identity', 'platform/audit'],
  // What the control plane, the runner and its gateway share of deployments.
  'platform/deployments': [
    'base',
    'platform/store',
    'platform/identity',
    'platform/audit',
    'platform/vault',
    'platform/proxy-documents',
  ],
  'platform/settings': ['base', 'platform/setting-schemas'],
  'platform/setting-schemas': ['base'],
  'platform/runner-settings': ['base', 'platform/setting-schemas'],
  'platform/config': [
    'base',
    'platform/store',
    'platform/api',
    'platform/settings',
    'platform/setting-schemas',
    'platform/runner-settings',
  ],
  'platform/module': ['base', 'platform/store', 'platform/vault', 'platform/api', 'platform/config'],
  ...Object.fromEntries(MODULES.map((module) => [module, [...BELOW_MODULES, 'platform/module', ...MODULES]])),
  'platform/agent-server': [...BELOW_MODULES, 'agent-worker/protocol', 'platform/module', ...MODULES],
  'platform/builder': [
    'base',
    'box-host/command',
    'workload',
    'platform/store',
    'platform/deployments',
    'platform/agent-server',
  ],
  'platform/control-plane': [...BELOW_MODULES, 'platform/deployments', 'platform/module', ...MODULES],
  // With its gateway, the users of the reverse proxy.
  'platform/deployment-gateway': [
    ...BELOW_MODULES,
    'platform/deployments',
    'gateway',
    'platform/agent-server',
  ],
  // What a filter means: the language of traces and of exports.
  'platform/traces/filter': ['base'],
  'platform/traces': [...BELOW_MODULES, 'platform/module', 'platform/traces/filter', ...MODULES],
  'platform/bulk-export': [...BELOW_MODULES, 'platform/module', 'platform/traces/filter', ...MODULES],
  'platform/sandboxes': [...BELOW_MODULES, 'gateway', 'platform/module', ...MODULES],
  // A program of its own: it builds, runs and reaches deployments.
  'platform/runner': [
    ...BELOW_MODULES.filter((one) => one !== 'platform/runtime'),
    'workload',
    'platform/deployments',
    'platform/runner-settings',
    'platform/config',
    'platform/agent-server',
    'platform/deployment-gateway',
    ...MODULES,
  ],
  // What runs beside the platform on its database.
  'platform/programs': [
    'base',
    'platform',
    'platform/store',
    'platform/vault',
    'platform/settings',
    'platform/config',
    ...MODULES,
  ],
  platform: [
    'base',
    'platform/programs',
    'platform/store',
    'platform/identity',
    'platform/audit',
    'platform/vault',
    'platform/runtime',
    'platform/api',
    ...MODULES,
    'workload',
    'platform/deployments',
    'platform/deployment-gateway',
    'platform/runner',
    'platform/builder',
    'platform/runner-settings',
    'platform/config',
    'platform/module',
  ],
};

/** The two versions of HTTP may use all that is below them, and never each other. */
function versions(...names: readonly string[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(names.map((name) => [name, belowTunnel()]));
}

function belowTunnel(): readonly string[] {
  const shared = [
    'upstream',
    'mask',
    'local',
    'context',
    'idle-watch',
    'paused-client',
    'forwarded-pieces',
    'splice',
    'gate',
  ];
  return [...VOCABULARY, ...PROXY_GROUND, ...shared.map((name) => `proxy/${name}`)];
}

/** Modules without I/O, with the builtins that they may use. */
const PURE: Readonly<Record<string, readonly string[]>> = {
  policy: ['node:buffer', 'node:crypto', 'node:url', 'node:util'],
  http1: ['node:buffer', 'node:util'],
};

/** The one file that imports an npm package. */
const ADAPTERS: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': 'src/platform/store/files/s3-client.ts',
  '@aws-sdk/lib-storage': 'src/platform/store/files/s3-upload.ts',
  '@fastify/busboy': 'src/base/http/multipart.ts',
  esbuild: 'src/platform/agent-server/configuration/esbuild.ts',
  'http-proxy-3': 'src/gateway/forwarder.ts',
  'hyparquet-writer': 'src/platform/bulk-export/files/parquet-file.ts',
  ignore: 'src/cli/deploy/ignore-rules.ts',
  kysely: 'src/platform/store/sql.ts',
  'libsodium-wrappers': 'src/base/seal.ts',
  'lru-cache': 'src/base/bounded-cache.ts',
  'node-forge': 'src/tls/certificate.ts',
  pg: 'src/platform/store/database.ts',
  'pg-boss': 'src/platform/store/jobs.ts',
  'pg-copy-streams': 'src/platform/store/postgres/copy.ts',
  'pg-connection-string': 'src/platform/store/connection.ts',
  picomatch: 'src/policy/match/host-pattern.ts',
  pino: 'src/base/log.ts',
  'prom-client': 'src/base/metrics/prometheus.ts',
  'tar-stream': 'src/base/archive/tar-archive.ts',
  tldts: 'src/policy/authority/public-suffix.ts',
  undici: 'src/callback/client.ts',
  ws: 'src/box-host/data-plane/web-socket.ts',
  zod: 'src/base/schema.ts',
  'zod-openapi': 'src/platform/api/openapi/openapi.ts',
};

/** Packages that may only be loaded when first needed. */
const LAZY: readonly string[] = [
  '@aws-sdk/client-s3',
  '@aws-sdk/lib-storage',
  'esbuild',
  'hyparquet-writer',
  'libsodium-wrappers',
  'pg-boss',
  'pg-copy-streams',
  'undici',
  'ws',
];

/** The only files that may read the value of a secret. */
const REVEALING: readonly string[] = [
  'src/box-host/sidecars/box-proxy.ts',
  'src/callback/client.ts',
  // What must not be in a log is looked for in it.
  'src/platform/deployments/log-mask.ts',
  // The key of the API and the secrets of a deployment, in a call of that API.
  'src/cli/deploy/control-plane.ts',
  'src/cli/deploy/platform-call.ts',
  // The user of a run, for the worker that executes it.
  'src/platform/agent-server/access/run-users.ts',
  'src/platform/bulk-export/destinations/credentials.ts',
  'src/platform/proxy-documents/sealed-document.ts',
  // What is secret of a deployment, for the descriptor of its agent server.
  'src/platform/runner/databases/scram-verifier.ts',
  'src/platform/runner/databases/size-limit.ts',
  'src/platform/runner/deployments/running-policy.ts',
  'src/platform/runner/instances/agent-input.ts',
  'src/platform/runner/traces/trace-sender.ts',
  'src/platform/runtime/box-host-documents.ts',
  'src/platform/sandboxes/box-secrets.ts',
  'src/platform/store/files/s3-client.ts',
  'src/platform/vault/master-keys.ts',
  'src/platform/vault/vault.ts',
  'src/proxy/gate/inject.ts',
  'src/sidecar/records/record-post.ts',
  'src/sidecar/sandboxes/config-transfer.ts',
  'src/sidecar/state/sandbox-state.ts',
];

/** The only files that may open a value that the vault has sealed, a data key or the file of master keys. */
const UNSEALING: readonly string[] = [
  'src/platform/agent-server/access/run-users.ts',
  'src/platform/bulk-export/destinations/credentials.ts',
  'src/platform/deployments/deployment-databases.ts',
  'src/platform/deployments/deployment-secrets.ts',
  'src/platform/initialization.ts',
  'src/platform/platform.ts',
  'src/platform/programs/export-worker-program.ts',
  'src/platform/runner-program.ts',
  'src/platform/proxy-documents/sealed-document.ts',
  'src/platform/sandboxes/box-secrets.ts',
  'src/platform/vault/master-key-registry.ts',
  'src/platform/vault/master-keys.ts',
  'src/platform/vault/rewrap.ts',
  'src/platform/vault/vault.ts',
  'src/platform/workspace-secrets/contract.ts',
];

const sources: readonly SourceFile[] = readSources('src/**/*.ts');

/** The module of a file: the deepest listed folder, or for files at the top of src/proxy the file itself. */
function moduleOf(path: string): string {
  const parts = path
    .replace(/^src\//, '')
    .replace(/(\.d)?\.ts$/, '')
    .split('/');
  for (let n = parts.length; n > 1; n -= 1) {
    const name = parts.slice(0, n).join('/');
    if (name in ALLOWED) return name;
  }
  return parts[0] ?? '';
}

/** A module that may import a folder may import the modules inside it, except those of the platform. */
function isAllowed(from: string, to: string): boolean {
  const allowed = ALLOWED[from] ?? [];
  return allowed.some((one) => to === one || (one !== 'platform' && to.startsWith(`${one}/`)));
}

function climbs(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, imports } of files) {
    const module = moduleOf(path);
    for (const { to } of imports) {
      if (!to.startsWith('src/') || moduleOf(to) === module) continue;
      if (!isAllowed(module, moduleOf(to))) found.push(`${path} -> ${to}`);
    }
  }
  return found;
}

/** Modules of the platform meet in contracts, which are types and ports: a contract imports nothing of its own module. */
function secretPaths(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, imports } of files) {
    const module = moduleOf(path);
    if (!MODULES.includes(module)) continue;
    const isContract = path === `src/${module}/contract.ts`;
    for (const { to } of imports) {
      const other = moduleOf(to);
      const isOpen = other === module ? !isContract : to === `src/${other}/contract.ts`;
      if (MODULES.includes(other) && !isOpen) found.push(`${path} -> ${to}`);
    }
  }
  return found;
}

/** Every source that these import, at once or later, without what is only a type. */
function loadedFrom(start: readonly string[]): ReadonlySet<string> {
  const texts = new Map(sources.map(({ path, text }) => [path, text]));
  const found = new Set(start);
  for (const path of found)
    for (const [, types, specifier = ''] of (texts.get(path) ?? '').matchAll(
      /\b(?:import|export)( type)?\b(?:[^'";]*\bfrom)?\s*\(?\s*'(\.[^']+)'/g,
    ))
      if (types === undefined) found.add(join(dirname(path), specifier));
  return found;
}

function leavings(files: readonly SourceFile[]): readonly string[] {
  const imports = files.flatMap(({ path, imports: all }) => all.map(({ to }) => ({ path, to })));
  return imports.filter(({ to }) => to.startsWith('..')).map(({ path, to }) => `${path} -> ${to}`);
}

function impurities(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, text, imports } of files) {
    const allowed = PURE[moduleOf(path).split('/')[0] ?? ''];
    if (allowed === undefined) continue;
    for (const { to } of imports)
      if (to.startsWith('node:') && !allowed.includes(to)) found.push(`${path} -> ${to}`);
    const code = text.replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gm, '');
    const [word] = /\bawait\b|\basync\b|\bsetTimeout\b|\bprocess\.|\bfetch\(/.exec(code) ?? [];
    if (word !== undefined) found.push(`${path}: ${word}`);
  }
  return found;
}

function foreignImports(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, text, imports } of files) {
    if (path.endsWith('.d.ts')) continue;
    for (const { to, form } of imports) {
      if (to.startsWith('node:') || to.startsWith('src/') || to.startsWith('..')) continue;
      const name = packageOf(to);
      const isType = new RegExp(`^import type [^;]*'${to}'`, 'm').test(text);
      if (ADAPTERS[name] !== path) found.push(`${path} -> ${to}`);
      else if (LAZY.includes(name) && form === 'static' && !isType) found.push(`${path} -> ${to} (not lazy)`);
    }
  }
  return found;
}

function circles(files: readonly SourceFile[]): readonly string[] {
  const graph = new Map(files.map((file) => [file.path, file.imports.map(({ to }) => to)]));
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at !== -1) found.push([...trail.slice(at), path].join(' -> '));
    if (at !== -1 || done.has(path)) return;
    for (const to of graph.get(path) ?? []) walk(to, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) walk(path, []);
  return found;
}

function revelations(files: readonly SourceFile[]): readonly string[] {
  const revealing = files.filter(({ text }) =>
    /\breveal\b(?!\(\): string)/.test(text.replaceAll(/\/\/.*$/gm, '')),
  );
  return revealing.map(({ path }) => path).filter((path) => !REVEALING.includes(path));
}

function unsealings(files: readonly SourceFile[]): readonly string[] {
  const unsealing = files.filter(({ text }) =>
    /\b(?:unsealValue|unwrapKey|createVault|findKeysOf|(?:read|find)MasterKeys)\b/.test(
      text.replaceAll(/\/\/.*$/gm, ''),
    ),
  );
  return unsealing.map(({ path }) => path).filter((path) => !UNSEALING.includes(path));
}

describe('the import rules', () => {
  it('list every module', () => {
    expect(sources.length).toBeGreaterThan(10);
    const modules = new Set(sources.map(({ path }) => moduleOf(path)));
    expect([...modules].filter((module) => !(module in ALLOWED))).toEqual([]);
  });

  it('keep what writes files of exports out of every process that serves', () => {
    const loaded = loadedFrom(['src/platform/platform.ts', 'src/cli/platform.ts', 'src/platform/modules.ts']);
    expect(loaded.has('src/platform/bulk-export/exports/export-routes.ts')).toBe(true);
    for (const writer of [
      'files/run-export',
      'files/parquet-file',
      'files/file-upload',
      'worker/export-worker',
    ])
      expect(loaded.has(`src/platform/bulk-export/${writer}.ts`), writer).toBe(false);
    expect(loaded.has('src/platform/store/files/s3-upload.ts')).toBe(false);
  });

  it('let imports point down only', () => expect(climbs(sources)).toEqual([]));

  it('know every module of the platform that runs', () => {
    const names = [...modules.map(({ name }) => name), 'agent-server'].map((name) => `platform/${name}`);
    expect(MODULES.toSorted()).toEqual(names.toSorted());
  });

  it('let a module of the platform see the contracts of others alone', () =>
    expect(secretPaths(sources)).toEqual([]));

  it('keep the sources to themselves', () => expect(leavings(sources)).toEqual([]));

  it('have no circle, type imports included', () => expect(circles(sources)).toEqual([]));

  it('keep policy and http1 free of I/O, clocks and waiting', () => expect(impurities(sources)).toEqual([]));

  it('give each npm package one adapter', () => expect(foreignImports(sources)).toEqual([]));

  it('have an adapter for each dependency, and for no package that the lockfile does not have', () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(Object.keys(dependencies).filter((name) => !(name in ADAPTERS))).toEqual([]);
    // What is bundled need not be installed with the package.
    const locked = { ...dependencies, ...devDependencies };
    expect(Object.keys(ADAPTERS).filter((name) => !(name in locked))).toEqual([]);
    const imported = new Set(sources.flatMap(({ imports }) => imports.map(({ to }) => packageOf(to))));
    expect(Object.keys(ADAPTERS).filter((name) => !imported.has(name))).toEqual([]);
  });

  it('read secret values in the listed files only', () => expect(revelations(sources)).toEqual([]));

  it('open values of the vault in the listed files only', () => expect(unsealings(sources)).toEqual([]));
});

describe('a violation is found', () => {
  const rows: readonly (readonly [
    string,
    (files: readonly SourceFile[]) => readonly string[],
    string,
    string,
  ])[] = [
    ['upwards', climbs, 'src/base/a.ts', "import { x } from '../proxy/b.ts';"],
    ['upwards for a type', climbs, 'src/policy/a.ts', "import type { X } from '../proxy/b.ts';"],
    ['sideways', climbs, 'src/tls/a.ts', "import { x } from '../policy/b.ts';"],
    ['from HTTP/1.1 to HTTP/2', climbs, 'src/proxy/h1/a.ts', "import { x } from '../h2/b.ts';"],
    ['from HTTP/2 to HTTP/1.1', climbs, 'src/proxy/h2/a.ts', "import type { X } from '../h1/b.ts';"],
    [
      'from the pools to the gate',
      climbs,
      'src/proxy/upstream/a.ts',
      "import type { X } from '../gate/b.ts';",
    ],
    ['upwards over several lines', climbs, 'src/http1/a.ts', "import {\n  x,\n  y,\n} from '../proxy/b.ts';"],
    ['upwards by re-export', climbs, 'src/base/a.ts', "export { x } from '../tls/b.ts';"],
    ['upwards by a lazy import', climbs, 'src/base/a.ts', "const x = await import('../cli/b.ts');"],
    [
      'from a module of the platform into another',
      secretPaths,
      'src/platform/control-plane/a.ts',
      "import { x } from '../management/keys.ts';",
    ],
    [
      'from a module into another one deeper',
      secretPaths,
      'src/platform/control-plane/deployments/a.ts',
      "import type { X } from '../../management/contract/keys.ts';",
    ],
    [
      'from a contract into its own module',
      secretPaths,
      'src/platform/management/contract.ts',
      "import type { X } from './keys.ts';",
    ],
    [
      'from a module of the platform to the rules of the proxy',
      climbs,
      'src/platform/management/a.ts',
      "import type { X } from '../../policy/compile.ts';",
    ],
    [
      'from a module to the list of modules',
      climbs,
      'src/platform/management/a.ts',
      "import { modules } from '../modules.ts';",
    ],
    ['out of the sources', leavings, 'src/base/a.ts', "import { x } from '../../test/b.ts';"],
    ['I/O in a pure module', impurities, 'src/policy/a.ts', "import { connect } from 'node:net';"],
    ['waiting in a pure module', impurities, 'src/http1/a.ts', 'export async function f() {}'],
    [
      'from the agent of a box to the base',
      climbs,
      'src/box-agent/files/a.ts',
      "import { x } from '../../base/log.ts';",
    ],
    [
      'from the box host into the agent',
      climbs,
      'src/box-host/agents/a.ts',
      "import { x } from '../../box-agent/execute.ts';",
    ],
    ['a second adapter', foreignImports, 'src/proxy/a.ts', "import { z } from 'zod';"],
    [
      'a package without an adapter',
      foreignImports,
      'src/proxy/a.ts',
      "import x from '@some/package/file.js';",
    ],
    ['an eager undici', foreignImports, 'src/callback/client.ts', "import { Agent } from 'undici';"],
    ['a circle', circles, 'src/base/a.ts', "import type { X } from './a.ts';"],
    ['a secret read elsewhere', revelations, 'src/proxy/record.ts', 'log(secret.reveal());'],
    [
      'a value of the vault opened elsewhere',
      unsealings,
      'src/platform/a.ts',
      'await vault.unsealValue(db, place, sealed);',
    ],
    [
      'a data key opened elsewhere',
      unsealings,
      'src/platform/vault/a.ts',
      "import { unwrapKey } from './vault.ts';",
    ],
    ['a secret read by destructuring', revelations, 'src/proxy/record.ts', 'const { reveal } = secret;'],
  ];
  it.each(rows)('%s', (_, check, path, text) => {
    expect(check([toSourceFile(path, text)])).toHaveLength(1);
  });

  it('but not where a module imports the contract of another', () => {
    const text = "import type { X } from '../management/contract.ts';";
    const files = [toSourceFile('src/platform/control-plane/a.ts', text)];
    expect([...secretPaths(files), ...climbs(files)]).toEqual([]);
  });
});
