// What a worker asks for while the database is away: it waits, and is refused once another process has the run.
import { expect, it } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { waitForDatabase } from '../../../../src/platform/agent-server/queue/patience.ts';
import type { ServerCallPort } from '../../../../src/platform/agent-server/workers/graph-workers.ts';

const PLACE = { thread_id: '6b1c0b86-7a2f-4a57-8f0e-5d7a0c1c9f11', checkpoint_ns: '' };

/** Of a database that is away. */
function createPort(): { readonly port: ServerCallPort; onAsked(asked: () => void): void } {
  let asked = (): void => undefined;
  const port: ServerCallPort = {
    async handle() {
      asked();
      throw new DomainError('unavailable', 'The database cannot be reached');
    },
  };
  return { port, onAsked: (given) => void (asked = given) };
}

it.each(['before it is asked', 'while it waits'])(
  'a call of a run that is lost %s is refused, as no failure of the server',
  async (when) => {
    const lost = new AbortController();
    const { port, onAsked } = createPort();
    const patient = waitForDatabase(port, lost.signal);
    const lose = (): void => lost.abort(new Error('another process has the run'));
    if (when === 'while it waits') onAsked(() => setImmediate(lose));
    else lose();
    const refused = { name: 'DomainError', kind: 'conflict', message: 'This attempt of the run has ended' };
    await expect(patient.handle('checkpoint.get', PLACE)).rejects.toMatchObject(refused);
  },
);
