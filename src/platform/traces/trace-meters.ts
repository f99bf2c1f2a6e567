// What is counted of traces where metrics are configured. Labels are bounded: no name of a project or a workspace.
import type { Meters } from '../api/metrics.ts';
import type { ErrorFormat } from '../api/contract/error-formats.ts';
import type { WrittenRuns } from './runs/run-writing.ts';

/** What a request has brought, once it is committed. */
export type StoredRequest = {
  readonly written: WrittenRuns;
  /** Of its body, as it was sent and without its coding. */
  readonly sentBytes: number;
  readonly contentBytes: number;
  readonly attachments: readonly { readonly size: number }[];
  readonly feedback: number;
};

type Series = ReturnType<typeof createSeries>;

/** Of one process. It counts nothing before it is opened: many installations have no metrics. */
export class TraceMeters {
  #series: Series | undefined;
  #waiting = (): number => 0;

  open(meters: Meters | undefined, countPartitions: () => Promise<number>): void {
    if (meters === undefined) return;
    this.#series = createSeries(meters);
    const waiting = 'Large bodies with runs that wait for their turn';
    meters.gauge('trace_bodies_waiting', waiting, () => this.#waiting());
    meters.gauge('trace_partitions', 'Tables of days with runs in the database', countPartitions);
  }

  /** What waits for its turn, when that is asked for. */
  watch(waiting: () => number): void {
    this.#waiting = waiting;
  }

  onStored({ written, sentBytes, contentBytes, attachments, feedback }: StoredRequest): void {
    const series = this.#series;
    if (series === undefined) return;
    const { created, updated, seconds } = written;
    series.runs({ result: 'new' }, created);
    series.runs({ result: 'updated' }, updated);
    if (created + updated > 0) series.merges({}, seconds);
    series.bodies({ form: 'sent' }, sentBytes);
    series.bodies({ form: 'content' }, contentBytes);
    series.attachments(
      {},
      attachments.reduce((sum, { size }) => sum + size, 0),
    );
    series.feedback({}, feedback);
  }

  onFeedback(): void {
    this.#series?.feedback({}, 1);
  }

  onExpired(days: number): void {
    this.#series?.expired({}, days);
  }

  /** The same errors, counted. */
  countErrors(errors: ErrorFormat): ErrorFormat {
    return {
      ...errors,
      write: (error, requestId) => {
        this.#series?.rejected({ reason: error.code });
        return errors.write(error, requestId);
      },
    };
  }
}

function createSeries({ counter, seconds }: Meters) {
  return {
    runs: counter('trace_runs_total', 'Runs that were stored, by whether they had a row before', ['result']),
    bodies: counter('trace_body_bytes_total', 'Bytes of bodies with runs that were stored', ['form']),
    rejected: counter('trace_requests_rejected_total', 'Requests with runs that were refused or failed', [
      'reason',
    ]),
    merges: seconds(
      'trace_merge_duration_seconds',
      'Of the copy and merge of the runs of a request',
      [],
      'short',
    ),
    attachments: counter('trace_attachment_bytes_total', 'Bytes of attachments that were stored', []),
    feedback: counter('trace_feedback_total', 'Feedback that was stored', []),
    expired: counter('trace_days_expired_total', 'Days whose runs were removed as they are too old', []),
  };
}
