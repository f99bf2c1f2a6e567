// The module that docs/modules.md shows has the tests of every route, and does what the page says.
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { readAllMigrations } from '../../../src/platform/migrations.ts';
import { createPlatformApi, type PlatformApiOptions } from '../../support/platform-api.ts';
import { createScratch } from '../../support/scratch.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import { findDefects, openNewRoutes } from './new-route-checks.ts';
import { countWords, createNotes, NOTES_SQL } from './notes-module.ts';

async function createModule(): Promise<Pick<PlatformApiOptions, 'modules' | 'migrations'>> {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const number = String(readAllMigrations().length + 1).padStart(4, '0');
  const file = join(scratch.path, `${number}-notes.sql`);
  await writeFile(file, NOTES_SQL);
  return { modules: [createNotes()], migrations: [pathToFileURL(file)] };
}

it('the module of the documents has the tests of every route', async () => {
  await using scene = await openNewRoutes(await createModule());
  const routes = scene.operations.filter(({ path }) => path.startsWith('/v1/notes'));
  expect(routes).toHaveLength(2);
  const { found, sent } = await findDefects(
    scene,
    routes.map(({ route }) => route),
  );
  expect(found).toEqual([]);
  expect(sent).toBeGreaterThan(20);
});

it('its stream shows what was there, and what another request and a job changed', async () => {
  await using api = await createPlatformApi(await createModule());
  const organizationId = await api.addOrganization();
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
  const written = await api.ask('POST', '/v1/notes', { key, body: { text: 'two words' } });
  expect(written.status).toBe(201);
  await using stream = await api.follow('/v1/notes/stream', { key });
  expect(await stream.next()).toBe('event: notes\ndata: {"notes":1,"words":0}\n\n');
  const log = createLog('silent', { write: () => undefined });
  const { signal } = new AbortController();
  const context = { id: '1', signal, log, store: api.database.store, send: async () => undefined };
  await countWords.run({ note_id: written.body.id }, context);
  expect(await stream.next()).toBe('event: notes\ndata: {"notes":1,"words":2}\n\n');
  await api.ask('POST', '/v1/notes', { key, body: { text: 'another' } });
  expect(await stream.next()).toBe('event: notes\ndata: {"notes":2,"words":2}\n\n');
});

it('the page shows its code', () => {
  const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
  const squeeze = (text: string): string => text.replaceAll(/\s+/g, '');
  const source = squeeze(
    read('test/platform/every-route/notes-module.ts').replaceAll('../../../src/platform/', '../'),
  );
  const shown = [...read('docs/modules.md').matchAll(/```(?:ts|sql)\n([^]*?)```/g)].flatMap(
    ([, block = '']) => block.split(/^ *… *$/m),
  );
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.filter((block) => !source.includes(squeeze(block)))).toEqual([]);
});
