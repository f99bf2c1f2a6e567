// Every change of the status of a run, as the database saw it: when, and by a connection of which process.
import { connectOnce, type Connection } from '../../../src/platform/store/database.ts';

export type Change = {
  readonly seq: number;
  readonly atMs: number;
  /** The process whose connection it was. */
  readonly life: string;
  readonly kind: 'INSERT' | 'UPDATE' | 'DELETE';
  readonly runId: string;
  readonly threadId: string;
  readonly position: number;
  readonly job: string;
  readonly status: string;
  readonly attempt: number;
  readonly losses: number;
};

const RECORDER = `
  create table storm_changes (
    seq bigint generated always as identity, at timestamptz default clock_timestamp(), life text, kind text, run_id uuid,
    thread_id uuid, position bigint, job text, status text, attempt integer, losses integer);
  create function storm_record() returns trigger language plpgsql security definer set search_path = public as $$
  declare r agent_runs;
  begin
    if tg_op = 'DELETE' then r := old; else r := new; end if;
    if tg_op <> 'UPDATE' or old.status <> new.status or old.attempt <> new.attempt then
      insert into storm_changes (life, kind, run_id, thread_id, position, job, status, attempt, losses)
      values (current_setting('application_name'), tg_op, r.run_id, r.thread_id, r.position, r.metadata->>'job', r.status,
        r.attempt, r.losses);
    end if;
    return null;
  end $$;
  create trigger storm_record after insert or update or delete on agent_runs for each row execute function storm_record()`;

export async function recordChanges(owner: Connection): Promise<void> {
  await connectOnce(owner, (client) => client.query(RECORDER));
}

export async function readChanges(owner: Connection): Promise<readonly Change[]> {
  const { rows } = await connectOnce(owner, (client) =>
    client.query<Omit<Change, 'seq' | 'atMs' | 'position'> & Record<'seq' | 'at' | 'position', string>>(
      `select seq, extract(epoch from at) * 1000 as at, life, kind, run_id as "runId", thread_id as "threadId", position, job,
        status, attempt, losses from storm_changes order by seq`,
    ),
  );
  return rows.map(({ seq, at, position, ...row }) => ({
    ...{ ...row, seq: Number(seq), atMs: Number(at), position: Number(position) },
  }));
}
