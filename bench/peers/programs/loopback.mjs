// What the programs of the Node peers share: their options, and names that all resolve to 127.0.0.1.
import dns from 'node:dns';
import { createRequire } from 'node:module';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const options = JSON.parse(process.argv[2] ?? '{}');

/** A package that is installed outside of the sources. */
export const requirePeer = createRequire(join(options.modules, 'package.json'));

/** In the form of dns.lookup. */
export function lookup(_name, how, done) {
  const callback = typeof how === 'function' ? how : done;
  if (how?.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
}
dns.lookup = lookup;

/** The benchmark reads the file as soon as it exists. */
export function publishCa(pem) {
  writeFileSync(`${options.caOutput}.part`, pem);
  renameSync(`${options.caOutput}.part`, options.caOutput);
}
