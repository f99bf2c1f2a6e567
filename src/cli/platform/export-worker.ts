// `sallyport export-worker`: executes the bulk exports of a platform until it is stopped, or the platform that started it is gone. SIGTERM and
// SIGINT stop what runs, which is requeued; a second signal ends the process at once.
import { createFdSink, createLog } from '../../base/log.ts';
import { exportWorkerCommand } from '../command/export-worker-command.ts';
import { waitForSignal } from '../process/stop-signal.ts';
import { restartWithHeapSize } from './export-worker-heap.ts';
import { type ProgramSettings, readProgramSettings } from './program-settings.ts';

/** Exit code 0 after a signal or without its platform, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  await restartWithHeapSize(args);
  const settings = await readProgramSettings(exportWorkerCommand, args);
  return settings === undefined ? 2 : serve(settings);
}

/** What runs is stopped within ten seconds, and stored. */
const STOP_MS = 20_000;

async function serve({ config, parent, warnings }: ProgramSettings): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of warnings) log.warn(warning);
  const stopped = waitForSignal(STOP_MS, () =>
    log.error('shutdown timed out; exiting with runs of exports that are not stopped'),
  );
  const gone = parent?.ended.then(() => 'parent' as const) ?? new Promise<never>(() => undefined);
  try {
    const { openExportWorkerProgram } = await import('../../platform/programs/export-worker-program.ts');
    const opened = await Promise.race([openExportWorkerProgram(config, log), stopped, gone]);
    if (typeof opened === 'string') return 0;
    const { metricsUrl: metrics, places } = opened;
    log.info({ metrics, runs: places, pid: process.pid }, 'the export worker is ready');
    const reason = await Promise.race([stopped, gone]);
    log.info(reason === 'parent' ? 'the platform is gone' : 'the export worker is stopping');
    await opened.close();
    return 0;
  } finally {
    await sink.close();
  }
}
