// `npm run sandbox:storm [-- --boxes 100 --loads 2,20 --kills 0 --seed 1 --runtime auto]`: a platform with boxes as a tenant would have
// them: created, used and deleted, some at a time. Prints how long they take and what they cost. With `--kills`, platform, box host,
// sidecars and agents are killed at random. Exits with 1 if something is left behind, or if state and reality disagree.
import { cpus } from 'node:os';
import { runBoxKills } from '../test/platform/storm/box-kills.ts';
import { runBoxLoad } from '../test/platform/storm/box-load.ts';
import { parseBoxStormOptions } from '../test/platform/storm/box-storm-options.ts';

const options = parseBoxStormOptions(process.argv.slice(2));
const { boxes, loads, kills, seed, runtime } = options;
console.log(`seed ${seed}, ${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`);
const errors: string[] = [];
for (const load of boxes > 0 ? loads : []) errors.push(...(await runBoxLoad({ boxes, load, runtime })));
if (kills > 0) errors.push(...(await runBoxKills({ kills, seed, runtime })));
for (const error of errors) console.log(`BROKEN: ${error}`);
process.exitCode = errors.length === 0 ? 0 : 1;
