// A package as the benchmark starts it, with a delay: a proxy that uses so much more of its processor for each request.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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
