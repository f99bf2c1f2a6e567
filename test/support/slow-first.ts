// The order of the test files. A run of all tests would end with one worker waiting for a slow network and the others idle:
// vitest starts with the largest files, or with those that took longest in the run before, in which tests may be left out.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those that take longest, in this order; many of them wait more than they compute. */
const SLOW: readonly string[] = [
  'test/e2e/slow-network.test.ts',
  'test/platform/every-route/timing.test.ts',
  'test/platform/store/jobs.test.ts',
  'test/platform/store/embedded/postgres-kill.test.ts',
  'test/platform/store/embedded/postgres-server.test.ts',
  'test/platform/every-route/fuzz.test.ts',
  'test/cli/run.test.ts',
  'test/cli/platform.test.ts',
  'test/attacks/load/load.test.ts',
  'test/attacks/h2/h2.test.ts',
];

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = Map.groupBy(await super.sort(files), ({ project }) => project);
    return [...projects.values()].flatMap((ofProject) =>
      ofProject.toSorted((one, other) => rankOf(one) - rankOf(other)),
    );
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const at = SLOW.findIndex((file) => moduleId.endsWith(`/${file}`));
  return at === -1 ? SLOW.length : at;
}
