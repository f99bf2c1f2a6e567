// What a page of runs costs: `npm run bench -- trace-queries`. A platform as it is shipped, with a million runs in its database; one
// client asks for pages of 100 runs, with all their fields, in several ways.
import { parseArgs } from 'node:util';
import { createChildren } from './support/children.ts';
import { warningsOf } from './support/machine.ts';
import { UsageError, describeError } from './support/usage-error.ts';
import { openScene } from './platform/scene.ts';
import { measureQueries, type QueryOptions } from './traces/queries.ts';

try {
  await run();
} catch (error) {
  console.error(describeError(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

type Options = QueryOptions & { readonly package: string | undefined; readonly profile: string | undefined };

function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        runs: { type: 'string', default: '1000000' },
        days: { type: 'string', default: '30' },
        pages: { type: 'string', default: '200' },
        package: { type: 'string' },
        profile: { type: 'string' },
      },
    });
    const count = (name: 'runs' | 'days' | 'pages'): number => {
      const number = Number(values[name]);
      if (Number.isSafeInteger(number) && number >= 1) return number;
      throw new Error(`--${name} must be a whole number of at least 1, not ${values[name]}`);
    };
    return {
      ...{ runs: count('runs'), days: count('days'), pages: count('pages') },
      ...{ package: values.package, profile: values.profile },
    };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function run(): Promise<void> {
  const options = readOptions();
  await using children = createChildren();
  const scene = await openScene(children, options);
  const lines = await measureQueries(scene, options);
  console.log([...lines, ...warningsOf(scene.machine).map((line) => `WARNING: ${line}`)].join('\n'));
}
