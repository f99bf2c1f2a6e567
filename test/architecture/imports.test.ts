// The law of imports. The tables in this file ARE the law: to change it, change them, and ARCHITECTURE.md.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packageOf, readSources, type SourceFile, toSourceFile } from './source-tree.ts';

/** The platform's resources: none of them knows another. */
const RESOURCES: readonly string[] = [
  'platform/management',
  'platform/control-plane',
  'platform/sandbox-records',
];

/** What the files of a room may import besides their own room. Everything points down. */
const LAW: Readonly<Record<string, readonly string[]>> = {
  base: [],
  policy: ['base'],
  http1: ['base'],
  tls: ['base'],
  callback: ['base', 'policy', 'http1', 'tls'],
  proxy: ['base', 'policy', 'http1', 'tls', 'callback'],
  admin: ['base'],
  sidecar: ['base', 'policy', 'http1', 'tls', 'callback', 'proxy', 'admin'],
  cli: ['base', 'policy', 'http1', 'tls', 'callback', 'proxy', 'sidecar', 'platform'],
  main: ['base', 'cli', 'sidecar'],
  'platform/store': ['base'],
  'platform/identity': ['base', 'platform/store'],
  'platform/audit': ['base', 'platform/store'],
  'platform/api': ['base', 'platform/store', 'platform/identity', 'platform/audit'],
  ...Object.fromEntries(
    RESOURCES.map((space) => [
      space,
      ['base', 'platform/store', 'platform/identity', 'platform/audit', 'platform/api'],
    ]),
  ),
  platform: ['base', 'platform/store', 'platform/identity', 'platform/audit', 'platform/api', ...RESOURCES],
};

/** Rooms that do no I/O, with the builtins they may use all the same. */
const PURE: Readonly<Record<string, readonly string[]>> = {
  policy: ['node:buffer', 'node:crypto', 'node:url', 'node:util'],
  http1: ['node:buffer', 'node:util'],
};

/** The one file that imports an npm package. */
const ADAPTERS: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': 'src/platform/store/object-store.ts',
  '@hono/node-server': 'src/base/request-listener.ts',
  hono: 'src/base/router.ts',
  kysely: 'src/platform/store/sql.ts',
  'libsodium-wrappers': 'src/base/seal.ts',
  'lru-cache': 'src/base/bounded-cache.ts',
  'node-forge': 'src/tls/certificate.ts',
  pg: 'src/platform/store/database.ts',
  'pg-boss': 'src/platform/store/jobs.ts',
  picomatch: 'src/policy/match/host-pattern.ts',
  pino: 'src/base/log.ts',
  'prom-client': 'src/platform/api/metrics.ts',
  tldts: 'src/policy/authority/public-suffix.ts',
  undici: 'src/callback/client.ts',
  zod: 'src/base/schema.ts',
};

/** Packages that may only be loaded when first needed. */
const LAZY: readonly string[] = ['@aws-sdk/client-s3', 'libsodium-wrappers', 'pg-boss', 'undici'];

/** The only files that may open a secret. */
const REVEALING: readonly string[] = [
  'src/callback/client.ts',
  'src/proxy/gate/inject.ts',
  'src/sidecar/records/record-post.ts',
  'src/sidecar/state/sandbox-state.ts',
];

const sources: readonly SourceFile[] = readSources('src/**/*.ts');

function moduleOf(path: string): string {
  const [, space = '', file, inner] = path.split('/');
  if (space === 'platform' && inner !== undefined) return `${space}/${file}`;
  return file === undefined ? space.replace(/\.ts$/, '') : space;
}

function climbs(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, imports } of files) {
    const space = moduleOf(path);
    for (const { to } of imports) {
      if (!to.startsWith('src/') || moduleOf(to) === space) continue;
      if (!LAW[space]?.includes(moduleOf(to))) found.push(`${path} -> ${to}`);
    }
  }
  return found;
}

function leavings(files: readonly SourceFile[]): readonly string[] {
  const imports = files.flatMap(({ path, imports: all }) => all.map(({ to }) => ({ path, to })));
  return imports.filter(({ to }) => to.startsWith('..')).map(({ path, to }) => `${path} -> ${to}`);
}

function impurities(files: readonly SourceFile[]): readonly string[] {
  const found: string[] = [];
  for (const { path, text, imports } of files) {
    const allowed = PURE[moduleOf(path)];
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

describe('the law of imports', () => {
  it('knows every room', () => {
    expect(sources.length).toBeGreaterThan(10);
    expect(
      [...new Set(sources.map(({ path }) => moduleOf(path)))].filter((space) => !(space in LAW)),
    ).toEqual([]);
  });

  it('lets imports point down only', () => expect(climbs(sources)).toEqual([]));

  it('keeps the sources to themselves', () => expect(leavings(sources)).toEqual([]));

  it('has no circle, types counted', () => expect(circles(sources)).toEqual([]));

  it('keeps policy and http1 free of I/O, clocks and waiting', () => expect(impurities(sources)).toEqual([]));

  it('gives each npm package one door', () => expect(foreignImports(sources)).toEqual([]));

  it('has a door for each dependency and no other', () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(Object.keys(ADAPTERS).toSorted()).toEqual(Object.keys(dependencies).toSorted());
  });

  it('opens secrets in four files only', () => expect(revelations(sources)).toEqual([]));
});

describe('a breach of the law is seen', () => {
  const rows: readonly (readonly [
    string,
    (files: readonly SourceFile[]) => readonly string[],
    string,
    string,
  ])[] = [
    ['upwards', climbs, 'src/base/a.ts', "import { x } from '../proxy/b.ts';"],
    ['upwards for a type', climbs, 'src/policy/a.ts', "import type { X } from '../proxy/b.ts';"],
    ['sideways', climbs, 'src/tls/a.ts', "import { x } from '../policy/b.ts';"],
    ['upwards over several lines', climbs, 'src/http1/a.ts', "import {\n  x,\n  y,\n} from '../proxy/b.ts';"],
    ['upwards by re-export', climbs, 'src/base/a.ts', "export { x } from '../tls/b.ts';"],
    ['upwards by a lazy import', climbs, 'src/base/a.ts', "const x = await import('../cli/b.ts');"],
    ['out of the sources', leavings, 'src/base/a.ts', "import { x } from '../../test/b.ts';"],
    ['I/O in a pure room', impurities, 'src/policy/a.ts', "import { connect } from 'node:net';"],
    ['waiting in a pure room', impurities, 'src/http1/a.ts', 'export async function f() {}'],
    ['a second door', foreignImports, 'src/proxy/a.ts', "import { z } from 'zod';"],
    ['a package without a door', foreignImports, 'src/proxy/a.ts', "import x from '@some/package/file.js';"],
    ['an eager undici', foreignImports, 'src/callback/client.ts', "import { Agent } from 'undici';"],
    ['a circle', circles, 'src/base/a.ts', "import type { X } from './a.ts';"],
    ['a secret opened elsewhere', revelations, 'src/proxy/record.ts', 'log(secret.reveal());'],
    ['a secret opened by another road', revelations, 'src/proxy/record.ts', 'const { reveal } = secret;'],
  ];
  it.each(rows)('%s', (_, check, path, text) => {
    expect(check([toSourceFile(path, text)])).toHaveLength(1);
  });
});
