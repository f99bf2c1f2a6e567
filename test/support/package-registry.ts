// A registry of npm packages on loopback, which has the packages of this checkout in the versions of the lockfile: an install
// from it needs neither a cache nor the internet.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { projectRoot } from './spawned-process.ts';

export type PackageRegistry = AsyncDisposable & {
  readonly url: string;
  /** What was asked for and is not here. */
  readonly refused: readonly string[];
};

const { packages } = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8'));

export async function createPackageRegistry(): Promise<PackageRegistry> {
  const refused: string[] = [];
  const server = createServer(({ url: target = '' }, response) => {
    const [path = '', query] = decodeURIComponent(target).slice(1).split('?');
    const found = query === 'tarball' ? tarballOf(path) : packumentOf(path, `${url}/`);
    if (found === undefined) refused.push(target);
    response.writeHead(found === undefined ? 404 : 200).end(found);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    refused,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** All versions of a package that the lockfile has, whether or not they are for this system. */
function packumentOf(name: string, url: string): string | undefined {
  const paths = Object.keys(packages).filter((path) => path.endsWith(`node_modules/${name}`));
  if (paths.length === 0) return undefined;
  const versions = paths.map((path) => {
    const { resolved: _, integrity: __, ...manifest } = packages[path];
    return { ...manifest, name, dist: { tarball: `${url}${encodeURIComponent(path)}?tarball` } };
  });
  const byVersion = Object.fromEntries(versions.map((manifest) => [manifest.version, manifest]));
  return JSON.stringify({ name, 'dist-tags': { latest: versions[0]?.version }, versions: byVersion });
}

/** As the registry has it: without packages that are installed inside of it. */
function tarballOf(path: string): Buffer | undefined {
  if (!(path in packages)) return undefined;
  const args = ['-czf', '-', '--exclude=./node_modules', '--transform=s,^\\.,package,', '.'];
  const { status, stdout } = spawnSync('tar', args, { cwd: join(projectRoot, path), maxBuffer: 1 << 28 });
  return status === 0 ? stdout : undefined;
}
