// A bundle in a package of its own, as the benchmark starts it: dist/ belongs to the developer. With a delay, it is a proxy
// that uses so much more of its processor for each request.
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { launcher, projectRoot, runToEnd } from '../support/spawned-process.ts';

export async function buildPackage(folder: string): Promise<void> {
  await mkdir(join(folder, 'bin'), { recursive: true });
  await copyFile(launcher, join(folder, 'bin', 'sallyport.js'));
  await copyFile(join(projectRoot, 'package.json'), join(folder, 'package.json'));
  const build = join(projectRoot, 'scripts', 'build.ts');
  const built = await runToEnd(process.execPath, [build, join(folder, 'dist')]);
  expect(built.code, built.stderr).toBe(0);
}

/** An exchange writes to two TLS connections, the request to one and the response to the other. */
const WRITES = 2;

/** Makes the proxy of a built package compute for some microseconds more in each request. */
export async function slowDown(folder: string, microseconds: number): Promise<void> {
  const program = join(folder, 'dist', 'sallyport.js');
  const slower = `
import { TLSSocket } from 'node:tls';
const writeOfTls = TLSSocket.prototype.write;
TLSSocket.prototype.write = function (...args) {
  const endMs = performance.now() + ${microseconds / WRITES / 1000};
  while (performance.now() < endMs);
  return writeOfTls.apply(this, args);
};
`;
  await writeFile(program, slower + (await readFile(program, 'utf8')));
}
