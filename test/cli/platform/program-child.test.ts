// A program that a platform starts beside itself: which variables of the platform's own environment it has.
import { afterEach, expect, it, vi } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { startProgramChild } from '../../../src/cli/platform/program-child.ts';

afterEach(() => void vi.unstubAllEnvs());

const SHOW = 'console.log(JSON.stringify(process.env)); setInterval(() => undefined, 60_000);';

/** What a child has in its environment. */
async function readChildEnvironment(): Promise<Record<string, string>> {
  const printed = Promise.withResolvers<string>();
  const child = startProgramChild({
    program: [process.execPath, '-e', SHOW],
    ...{ command: 'export-worker', title: 'the export worker' },
    input: { document: {}, variables: {}, environment: {} },
    isNeeded: async () => true,
    log: createLog('silent', { write: () => undefined }),
    sink: { write: (line) => void printed.resolve(line) },
  });
  const text = await printed.promise;
  await child.close(5_000);
  return JSON.parse(text);
}

it('trusts the certificate authorities that the platform trusts, wherever it runs', async () => {
  vi.stubEnv('NODE_EXTRA_CA_CERTS', 'package.json');
  vi.stubEnv('NODE_USE_SYSTEM_CA', '1');
  expect(await readChildEnvironment()).toMatchObject({
    NODE_EXTRA_CA_CERTS: `${process.cwd()}/package.json`,
    NODE_USE_SYSTEM_CA: '1',
  });
});

it('has no other variable that the platform has', async () => {
  vi.stubEnv('NODE_EXTRA_CA_CERTS', undefined);
  vi.stubEnv('NODE_USE_SYSTEM_CA', undefined);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'canary');
  const environment = await readChildEnvironment();
  expect(environment['SALLYPORT_PARENT_INPUT']).toBe('3');
  expect(JSON.stringify(environment)).not.toMatch(/canary|_CA/);
});
