// `npm run deployments:storm [-- --kills 50 --seed 1]`: a platform with deployments that are created, changed and deleted, and kill -9 of the
// platform, its runner and agent servers, at random and in the middle of each step. Exits with 1 when rows and machine do not agree within 30
// seconds, when something is left behind, or when what was deployed does not respond within 5 seconds after what was killed runs again.
import { cpus } from 'node:os';
import { join } from 'node:path';
import { runDeploymentStorm } from '../test/platform/storm/deployment-storm.ts';
import { parseDeploymentStormOptions } from '../test/platform/storm/deployment-storm-options.ts';
import { closedRegistryAddresses } from './deployment-scene.ts';

const SHOWN_PROBLEMS = 40;

const options = parseDeploymentStormOptions(process.argv.slice(2));
console.log(
  `seed ${options.seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`,
);
const problems = await runDeploymentStorm({
  ...options,
  template: join(import.meta.dirname, 'rollover-source'),
  sidecarConfig: { egress: { allow_private: await closedRegistryAddresses() } },
});
for (const problem of problems.slice(0, SHOWN_PROBLEMS)) console.log(`BROKEN: ${problem}`);
if (problems.length > SHOWN_PROBLEMS) console.log(`BROKEN: ${problems.length - SHOWN_PROBLEMS} more`);
console.log(`problems: ${problems.length}`);
process.exitCode = problems.length === 0 ? 0 : 1;
process.exit();
