// The pages of the sidecar are followed: files are saved and commands run as they are written, in order, in one shell for each
// page. What a page shows as printed is printed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../support/spawned-process.ts';
import { missingLine, type Step, stepsOf } from './page-blocks.ts';
import { createPageShell, type PageShell, type Session } from './page-shell.ts';

const read = (page: string): string => readFileSync(join(projectRoot, page), 'utf8');

/** Each page with a request that must have reached a server: host, path and Authorization. */
const PAGES: readonly (readonly [page: string, request?: string])[] = [
  ['README.md', 'api.openai.com/v1/models Bearer sk-...'],
  ['docs/callbacks.md', 'eu.crm.example.com/accounts Bearer short-lived-token-for-eu.crm.example.com'],
  ['docs/admin-api.md'],
];
const LONG_PAGES: typeof PAGES = [
  ['docs/quick-start.md', 'api.openai.com/v1/models Bearer sk-...'],
  ['docs/secrets.md'],
  ['docs/several-sandboxes.md', 'example.com/ none'],
  ['docs/operations.md'],
  ['docs/metrics.md'],
];

/** The other pages with commands, and why they are not followed here. */
const NOT_FOLLOWED: Readonly<Record<string, string>> = {
  'docs/agent-server.md': 'needs a platform: npm run agent:demo',
  'docs/bulk-exports.md': 'needs a platform: npm run export:demo',
  'docs/clients.md': 'its clients: test/cli/env.test.ts, test/cli/run.test.ts',
  'docs/container.md': 'needs docker',
  'docs/data-plane.md': 'needs a platform: test/interop/sandbox-clients.test.ts',
  'docs/deployment-gateway.md': 'needs a platform',
  'docs/deployments.md': 'needs a platform: npm run deploy:demo',
  'docs/installation.md': 'needs the registry: test/bin/package.test.ts',
  'docs/platform.md': 'needs a platform: npm run platform:demo',
  'docs/platform-api.md': 'needs a platform: test/platform/every-route',
  'docs/sandboxes.md': 'needs a platform: npm run sandbox:demo',
  'docs/traces.md': 'needs a platform: npm run traces:demo',
};

/** The names that the pages use. */
const NAMES: readonly string[] = ['api.openai.com', 'eu.crm.example.com', 'api.example.com', 'example.com'];

it('every page with commands is followed, or has a reason', () => {
  const pages = readdirSync(join(projectRoot, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`);
  const withCommands = pages.filter((page) => /^```(console|sh|bash)\b/m.test(read(page)));
  const known = [...PAGES, ...LONG_PAGES].map(([page]) => page);
  const others = withCommands.filter((page) => !known.includes(page));
  expect(others.toSorted()).toEqual(Object.keys(NOT_FOLLOWED).toSorted());
});

describe('in a network without the internet', () => {
  let shell: PageShell;
  beforeAll(async () => {
    shell = await createPageShell(NAMES);
  });
  afterAll(() => shell?.[Symbol.asyncDispose]());

  const canBeFollowed = async (page = '', request?: string): Promise<void> => {
    await using session = await shell.open();
    for (const step of stepsOf(read(page))) await follow(session, step, page);
    if (request !== undefined) expect(await shell.requests()).toContain(request);
  };

  it.each(PAGES)('%s can be followed', canBeFollowed);
  it.each(LONG_PAGES)('%s can be followed', { tags: ['long'] }, canBeFollowed);
});

async function follow(session: Session, step: Step, page: string): Promise<void> {
  if (step.kind === 'file') return session.write(step.name, step.text);
  const { command, printed } = step;
  const at = `${page}:${step.line}: ${command}`;
  if (step.isBackground) {
    const output = await session.start(command);
    await expect
      .poll(async () => [at, await output(), missingLine(await output(), printed)], { interval: 20 })
      .toEqual([at, expect.anything(), undefined]);
    return;
  }
  // What it looks for may still be on its way to the file.
  if (command.startsWith('grep '))
    await expect.poll(async () => [at, (await session.run(command)).code], { interval: 20 }).toEqual([at, 0]);
  const { code, output } = await session.run(command);
  expect({ at, code, output, missing: missingLine(output, printed) }).toEqual({
    ...{ at, output, missing: undefined },
    code: 0,
  });
}
