// What the readers of one organization cost another one: `npm run bench -- neighbours`. Many clients read an audit log as fast as
// they can, one client of another organization reads a listener; each alone, and both at once. Exits with 1 where that client
// waits more than twice as long beside the readers.
import { parseArgs } from 'node:util';
import { createChildren } from './support/children.ts';
import { warningsOf } from './support/machine.ts';
import { drain } from './support/sallyport.ts';
import { UsageError, describeError } from './support/usage-error.ts';
import { MAX_RATIO, measureNeighbours, type NeighbourOptions } from './platform/neighbours.ts';
import { openScene } from './platform/scene.ts';

try {
  process.exitCode = (await run()) <= MAX_RATIO ? 0 : 1;
} catch (error) {
  console.error(describeError(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

type Options = NeighbourOptions & {
  readonly package: string | undefined;
  /** A directory for CPU profiles of the platform. */
  readonly profile: string | undefined;
};

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        readers: { type: 'string', default: '40' },
        events: { type: 'string', default: '50000' },
        rounds: { type: 'string', default: '5' },
        package: { type: 'string' },
        profile: { type: 'string' },
      },
    });
    const count = (name: 'readers' | 'events' | 'rounds'): number => {
      const number = Number(values[name]);
      if (Number.isSafeInteger(number) && number >= 1) return number;
      throw new Error(`--${name} must be a whole number of at least 1, not ${values[name]}`);
    };
    return {
      ...{ readers: count('readers'), events: count('events'), rounds: count('rounds') },
      package: values.package,
      profile: values.profile,
    };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Returns the largest p50 of the client beside readers, in times of its p50 alone. */
async function run(): Promise<number> {
  const options = readOptions();
  await using children = createChildren();
  const scene = await openScene(children, options);
  const cases = await measureNeighbours(children, scene, options);
  if (options.profile !== undefined) await drain(scene.platform.child);
  const lines = cases.flatMap(({ lines: each }) => each);
  console.log([...lines, ...warningsOf(scene.machine).map((line) => `WARNING: ${line}`)].join('\n'));
  return Math.max(...cases.map(({ ratio }) => ratio));
}
