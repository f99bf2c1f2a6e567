// Preloaded into a spawned proxy, after the name table: `lost.test` cannot be resolved, without a real query.
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const lookup = dns.promises.lookup;

Object.assign(dns.promises, {
  lookup: (name: string, ...rest: [never]) =>
    name === 'lost.test'
      ? Promise.reject(
          Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND', hostname: name }),
        )
      : lookup(name, ...rest),
});
syncBuiltinESMExports();
