// Where the records of exchanges go: into the log, to those who follow them and, if the config names a platform, to the platform.
import { readInput } from '../../base/input-error.ts';
import { type Log, type LogSink, createLineWriter, createStamp, writeStamped } from '../../base/log.ts';
import { ProxyCounters } from '../../proxy/counters.ts';
import {
  type ExchangeRecord,
  type RecordCounts,
  type Recorder,
  createRecorder,
  isWarning,
  recordMembers,
} from '../../proxy/record.ts';
import type { Config } from '../config.ts';
import { LiveRecords } from './live-records.ts';

export type RecordOutlets = {
  recorderOf(sandbox: string): Recorder;
  /** Of all sandboxes. */
  readonly counts: Readonly<RecordCounts>;
  readonly live: LiveRecords;
  /** Of records on their way to the platform: how many wait, and how many were lost. */
  readonly forwarding: { readonly waiting: number; readonly lost: number };
  /** Sends the waiting records, for at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

/** Throws an Error that says what to do if a file of the config cannot be read. */
export async function createRecordOutlets(
  { isRecorded, whenBlocked, recordForward }: Pick<Config, 'isRecorded' | 'whenBlocked' | 'recordForward'>,
  {
    sink,
    log,
    counters = new ProxyCounters(),
  }: { readonly sink: LogSink; readonly log: Log; readonly counters?: ProxyCounters },
): Promise<RecordOutlets> {
  const counts = { emitted: 0, dropped: 0 };
  const live = new LiveRecords();
  const onEnded = (record: ExchangeRecord, durationMs: number): void => {
    counters.countExchange(record, durationMs);
    live.tell(record);
  };
  if (recordForward === undefined) {
    // Independent of the log level: a quieter log must not lose records.
    const recorder = createRecorder({
      write: isRecorded ? createLineWriter(sink, recordMembers, isWarning) : undefined,
      sink,
      ...{ whenBlocked, counts, onEnded },
    });
    const forwarding = { waiting: 0, lost: 0 };
    return { recorderOf: () => recorder, counts, live, forwarding, close: async () => undefined };
  }
  const { RecordForwarder } = await import('./record-forwarder.ts');
  const forwarder = await readInput(() => new RecordForwarder({ ...recordForward, log }));
  const stamp = createStamp(recordMembers);
  const recorderOf = (sandbox: string): Recorder =>
    createRecorder({
      write(fields, msg) {
        const stamped = stamp(fields);
        if (isRecorded) writeStamped(sink, stamped, msg, isWarning(fields));
        forwarder.add(sandbox, stamped);
      },
      sink: {
        // With `drop` the platform cannot block the log: the forwarder drops records itself.
        get isBlocked() {
          return sink.isBlocked || (whenBlocked === 'refuse' && forwarder.isBlocked(sandbox));
        },
      },
      ...{ whenBlocked, counts, onEnded },
    });
  const forwarding = {
    get waiting() {
      return forwarder.waiting;
    },
    get lost() {
      return forwarder.counts.lost;
    },
  };
  return { recorderOf, counts, live, forwarding, close: (timeoutMs) => forwarder.close(timeoutMs) };
}
