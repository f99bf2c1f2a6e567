// A registry of npm packages on loopback, at an address that clients reach through their proxy.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { archive } from '../../support/archive-bytes.ts';
import type { Files } from './builder-scene.ts';

export type TestRegistry = AsyncDisposable & {
  readonly url: string;
  /** The paths that were asked for. */
  readonly requests: readonly string[];
  readonly integrity: ReadonlyMap<string, string>;
};

type Package = Readonly<Record<string, string>>;

/** `packages`: files by their names; `scripts.json` has the scripts of the package. Each has the version 1.0.0. */
export async function startTestRegistry(packages: Readonly<Record<string, Package>>): Promise<TestRegistry> {
  const tarballs = new Map(Object.entries(packages).map(([name, files]) => [name, pack(name, files)]));
  const integrity = new Map([...tarballs].map(([name, bytes]) => [name, integrityOf(bytes)]));
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requests.push(path);
    const [, name = '', rest] = /^\/([a-z]+)(\/-\/.*\.tgz)?$/.exec(path) ?? [];
    const tarball = tarballs.get(name);
    if (tarball === undefined) response.writeHead(404).end('{}');
    else if (rest !== undefined) response.end(tarball);
    else {
      const dist = { tarball: tarballUrl(url(), name), integrity: integrity.get(name) };
      const versions = { '1.0.0': { name, version: '1.0.0', dist } };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name, 'dist-tags': { latest: '1.0.0' }, versions }));
    }
  });
  const url = (): string => `http://127.0.0.2:${(server.address() as AddressInfo).port}/`;
  await new Promise((resolve) => server.listen(0, '127.0.0.2', () => resolve(undefined)));
  return {
    ...{ url: url(), requests, integrity },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The manifests of a source that depends on packages of the registry. */
export function lockFile({ url, integrity }: TestRegistry, names: readonly string[]): Files {
  const dependencies = Object.fromEntries(names.map((name) => [name, '1.0.0']));
  const installed = names.map((name) => [
    `node_modules/${name}`,
    {
      version: '1.0.0',
      resolved: tarballUrl(url, name),
      integrity: integrity.get(name),
      hasInstallScript: true,
    },
  ]);
  const packages = { '': { name: 'app', dependencies }, ...Object.fromEntries(installed) };
  return {
    'package.json': { name: 'app', dependencies },
    'package-lock.json': { name: 'app', lockfileVersion: 3, requires: true, packages },
  };
}

function tarballUrl(url: string, name: string): string {
  return `${url}${name}/-/${name}-1.0.0.tgz`;
}

function pack(name: string, { 'scripts.json': scripts = '{}', ...files }: Package): Buffer {
  const manifest = { name, version: '1.0.0', main: 'index.js', scripts: JSON.parse(scripts) };
  const entries = Object.entries({ 'package.json': JSON.stringify(manifest), ...files });
  return gzipSync(archive(entries.map(([file, content]) => ({ name: `package/${file}`, content }))));
}

function integrityOf(bytes: Buffer): string {
  return `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
}
