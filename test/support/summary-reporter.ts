// What a test run prints: each failure in full, each skipped test with its reason, the slowest files, the totals. A file
// that passes prints nothing.
import { MinimalReporter, type TestCase, type TestModule } from 'vitest/node';

const SLOWEST_FILES = 10;
/** More would push the totals off the screen; they are counted. */
const MAX_SKIPPED_SHOWN = 15;

export class SummaryReporter extends MinimalReporter {
  override onTestRunEnd(...ended: Parameters<MinimalReporter['onTestRunEnd']>): void {
    const [testModules] = ended;
    this.#printSkipped(testModules.flatMap((testModule) => [...testModule.children.allTests('skipped')]));
    this.#printSlowest(testModules);
    super.onTestRunEnd(...ended);
  }

  #printSkipped(tests: readonly TestCase[]): void {
    const left = tests.filter(isLong);
    const skipped = tests.filter((test) => !isLong(test));
    if (left.length > 0) this.log(`left to npm run test:all: ${left.length} tests with the tag "long"`);
    for (const test of skipped.slice(0, MAX_SKIPPED_SHOWN)) this.log(`skipped: ${describeSkipped(test)}`);
    if (skipped.length > MAX_SKIPPED_SHOWN) this.log(`skipped: ${skipped.length - MAX_SKIPPED_SHOWN} more`);
  }

  #printSlowest(testModules: readonly TestModule[]): void {
    const timed = testModules.map((testModule) => ({
      name: testModule.relativeModuleId,
      seconds: testModule.diagnostic().duration / 1000,
    }));
    const slowest = timed.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST_FILES);
    this.log('slowest files:');
    for (const { name, seconds } of slowest) this.log(`${seconds.toFixed(1).padStart(7)} s  ${name}`);
  }
}

function isLong(test: TestCase): boolean {
  return test.tags.includes('long');
}

function describeSkipped(test: TestCase): string {
  const result = test.result();
  const reason = result.state === 'skipped' ? result.note : undefined;
  const title = `${test.module.relativeModuleId} > ${test.fullName}`;
  return reason === undefined ? title : `${title} (${reason})`;
}
