// Preloaded into a spawned proxy (`node --import`): names ending in `.test`, which no resolver knows, resolve to
// loopback, so that tests can use host names without changing the machine's hosts file.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const lookup = dns.lookup;
const lookupPromise = dns.promises.lookup;

function toLoopback(name: string): string {
  return /(^|\.)test\.?$/i.test(name) ? '127.0.0.1' : name;
}

Object.assign(dns, {
  lookup: (name: string, ...rest: [never, never]) => lookup(toLoopback(name), ...rest),
});
Object.assign(dns.promises, {
  lookup: (name: string, ...rest: [never]) => lookupPromise(toLoopback(name), ...rest),
});
syncBuiltinESMExports();
