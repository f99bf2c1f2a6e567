// `npm run deployments:storm [-- --kills 50 --seed 1]`: a platform with deployments that are created, changed and deleted, and kill -9 of the
// platform, its runner and agent servers, at random and in the middle of each step. Exits with 1 when rows and machine do not agree within 30
// seconds, when something is left behind, or when what was deployed does not respond within 5 seconds after what was killed runs again.
import { cpus } from 'node:os';
import { join } from 'node:path';
import { runDeploymentStorm } from '../test/platform/storm/deployment-storm.ts';
import { createStormPlatform } from '../test/platform/storm/deployment-storm-platform.ts';
import { parseDeploymentStormOptions } from '../test/platform/storm/deployment-storm-options.ts';
import { closedRegistryAddresses } from './deployment-scene.ts';

const SHOWN_PROBLEMS = 40;

const options = parseDeploymentStormOptions(process.argv.slice(2));
console.log(
  `seed ${options.seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`,
);
const interrupted = Promise.withResolvers<readonly string[]>();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => interrupted.resolve([`it was ended by ${signal}`]));
const platform = await createStormPlatform({
  egress: { allow_private: await closedRegistryAddresses() },
});
const template = join(import.meta.dirname, 'rollover-source');
const problems = await Promise.race([
  runDeploymentStorm(platform, { ...options, template }),
  interrupted.promise,
]).finally(() => platform[Symbol.asyncDispose]());
for (const problem of problems.slice(0, SHOWN_PROBLEMS)) console.log(`BROKEN: ${problem}`);
if (problems.length > SHOWN_PROBLEMS) console.log(`BROKEN: ${problems.length - SHOWN_PROBLEMS} more`);
console.log(`problems: ${problems.length}`);
process.exitCode = problems.length === 0 ? 0 : 1;
process.exit();
