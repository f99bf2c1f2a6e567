// A whole module, as docs/modules.md shows it: a table, routes, a stream of events and a job.
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { eventStream } from '../../../src/platform/api/responses.ts';
import { defineRoute, type Route, UNTRACKED_READ } from '../../../src/platform/api/route.ts';
import { wakeUps } from '../../../src/platform/api/stream/wake-ups.ts';
import type { Module, Wiring } from '../../../src/platform/module.ts';
import { defineJob } from '../../../src/platform/store/job.ts';
import { notify } from '../../../src/platform/store/postgres/notifications.ts';
import type { Fixed, Generated } from '../../../src/platform/store/sql.ts';

export const NOTES_SQL = `
create table notes (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  text text not null,
  words integer
);
create index notes_workspace on notes (workspace_id);
grant select, insert, update on notes to sallyport_app;
`;

declare module '../../../src/platform/store/tables.ts' {
  interface Tables {
    readonly notes: {
      readonly id: Fixed<string>;
      readonly workspace_id: string;
      readonly text: string;
      words: Generated<number | null>;
    };
  }
}

export const countWords = defineJob({
  name: 'count-words',
  data: z.strictObject({ note_id: z.uuid() }),
  ...{ retries: 3, delaySeconds: 5, timeoutSeconds: 60 },
  async run({ note_id }, { store }) {
    await store.write(async (trx) => {
      const notes = trx.selectFrom('notes').select(['text', 'workspace_id']);
      const note = await notes.where('id', '=', note_id).executeTakeFirst();
      if (note === undefined) return;
      const words = note.text.split(/\s+/).length;
      await trx.updateTable('notes').set({ words }).where('id', '=', note_id).execute();
      await notify(trx, 'traces', note.workspace_id);
    });
  },
});

const note = z
  .strictObject({ id: z.uuid(), text: z.string().min(1).max(99), words: z.int().nullable() })
  .meta({ id: 'Note' });
const shared = { path: '/v1/notes', tag: 'Notes' } as const;

const createNote = ({ send }: Wiring): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    summary: 'Write a note',
    access: inWorkspace('deployments:update'),
    tracking: { operation: 'update_listener' },
    body: note.pick({ text: true }),
    responses: { 201: note },
    async handle({ db, workspaceId, body }) {
      const row = { workspace_id: workspaceId, text: body.text };
      const insert = db.insertInto('notes').values(row).returning(['id', 'text', 'words']);
      const written = await insert.executeTakeFirstOrThrow();
      await send(db, countWords, { note_id: written.id });
      await notify(db, 'traces', workspaceId);
      return { body: written, resources: [written.id] };
    },
  });

const followNotes = ({ notifications }: Wiring): Route =>
  defineRoute({
    ...shared,
    path: '/v1/notes/stream',
    method: 'GET',
    summary: 'Follow the number of notes of the workspace',
    access: inWorkspace('deployments:read'),
    tracking: UNTRACKED_READ,
    responses: { 200: eventStream() },
    handle: async () => ({}),
    async *stream({ db, workspaceId, signal }) {
      const isMeant = (payload: string): boolean => payload === workspaceId;
      for await (const _ of wakeUps(notifications, { channel: 'traces', signal, isMeant })) {
        const rows = db.selectFrom('notes').where('workspace_id', '=', workspaceId);
        const { notes, words } = await rows
          .select(({ fn }) => [fn.countAll<string>().as('notes'), fn.sum<string>('words').as('words')])
          .executeTakeFirstOrThrow();
        yield { event: 'notes', data: { notes: Number(notes), words: Number(words ?? 0) } };
      }
    },
  });

export function createNotes(): Module {
  return {
    name: 'notes',
    jobs: [countWords],
    routes: (wiring) => [createNote(wiring), followNotes(wiring)],
  };
}
