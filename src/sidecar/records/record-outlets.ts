// Records of exchanges into the log and to the platform. Loaded when the config names a platform. It must not know what a
// record holds.
import { type Log, type LogSink, createStamp, writeStamped } from '../../base/log.ts';
import { type Recorder, createRecorder } from '../../proxy/record.ts';
import type { Config } from '../config.ts';
import type { RecordForward } from './record-forward-config.ts';
import { createRecordForwarder } from './record-forwarder.ts';

export type RecordOutlets = {
  recorderOf(sandbox: string): Recorder;
  /** Sends what waits to be sent, for at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

/** Throws an Error that says what to mend when a file that it needs cannot be read. */
export function createRecordOutlets(
  { isRecorded, whenBlocked }: Pick<Config, 'isRecorded' | 'whenBlocked'>,
  forward: RecordForward,
  { sink, log }: { readonly sink: LogSink; readonly log: Log },
): RecordOutlets {
  const forwarder = createRecordForwarder({ ...forward, log });
  const stamp = createStamp();
  const recorderOf = (sandbox: string): Recorder =>
    createRecorder({
      write(fields, msg) {
        const stamped = stamp(fields);
        if (isRecorded) writeStamped(sink, stamped, msg);
        forwarder.take(sandbox, stamped);
      },
      sink: {
        // With `drop` the log loses nothing for the platform's sake: the forwarder drops by itself.
        get isBlocked() {
          return sink.isBlocked || (whenBlocked === 'refuse' && forwarder.isBlocked(sandbox));
        },
      },
      whenBlocked,
    });
  return { recorderOf, close: (timeoutMs) => forwarder.close(timeoutMs) };
}
