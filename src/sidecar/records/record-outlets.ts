// Where the records of exchanges go: into the log and, if the config names a platform, to the platform.
import { readInput } from '../../base/input-error.ts';
import { type Log, type LogSink, createLineWriter, createStamp, writeStamped } from '../../base/log.ts';
import {
  type RecordCounts,
  type Recorder,
  createRecorder,
  isWarning,
  recordMembers,
} from '../../proxy/record.ts';
import type { Config } from '../config.ts';

export type RecordOutlets = {
  recorderOf(sandbox: string): Recorder;
  /** Of all sandboxes. */
  readonly counts: Readonly<RecordCounts>;
  /** Sends the waiting records, for at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

/** Throws an Error that says what to do if a file of the config cannot be read. */
export async function createRecordOutlets(
  { isRecorded, whenBlocked, recordForward }: Pick<Config, 'isRecorded' | 'whenBlocked' | 'recordForward'>,
  { sink, log }: { readonly sink: LogSink; readonly log: Log },
): Promise<RecordOutlets> {
  const counts = { emitted: 0, dropped: 0 };
  if (recordForward === undefined) {
    // Independent of the log level: a quieter log must not lose records.
    const recorder = createRecorder({
      write: isRecorded ? createLineWriter(sink, recordMembers, isWarning) : undefined,
      sink,
      whenBlocked,
      counts,
    });
    return { recorderOf: () => recorder, counts, close: async () => undefined };
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
      whenBlocked,
      counts,
    });
  return { recorderOf, counts, close: (timeoutMs) => forwarder.close(timeoutMs) };
}
