// `npm run bench`: the benchmark of the proxy, or with a name as its first argument another one.
const others: Readonly<Record<string, string>> = {
  platform: './platform.ts',
  neighbours: './neighbours.ts',
  streams: './streams.ts',
  gateway: './gateway.ts',
  writes: './writes.ts',
  agent: './agent.ts',
  deployments: './deployments.ts',
  traces: './traces.ts',
  'trace-queries': './trace-queries.ts',
  exports: './exports.ts',
  'live-records': './live-records.ts',
};

const [, , name = ''] = process.argv;
const isOther = Object.hasOwn(others, name);
// Each reads its own options, in which its name is none.
if (isOther) process.argv.splice(2, 1);
await import(isOther ? String(others[name]) : './injection.ts');
