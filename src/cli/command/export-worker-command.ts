// The declaration of `sallyport export-worker`.
import type { CommandDeclaration } from './declaration.ts';

export const exportWorkerCommand = {
  name: 'export-worker',
  summary: 'execute the bulk exports of a platform on this machine',
  options: {
    config: { type: 'string', value: 'FILE', text: 'config file of the platform' },
    'data-dir': {
      type: 'string',
      value: 'DIR',
      text: 'data directory of the platform',
      variable: 'SALLYPORT_PLATFORM_DATA_DIR',
      fallback: '~/.local/state/sallyport/platform',
    },
    runs: {
      type: 'string',
      value: 'N',
      text: 'runs of exports that are executed at once',
      variable: 'SALLYPORT_PLATFORM_EXPORTS_WORKER_RUNS',
      fallback: 'the cores',
    },
  },
  notes: [
    'The platform starts it unless SALLYPORT_PLATFORM_EXPORTS_WORKER_START is false. It reads the same settings as the platform.',
    'SALLYPORT_PLATFORM_EXPORTS_WORKER_METRICS_LISTEN is the address of its metrics, and of /ok, which says whether it is ready.',
    'Several of them, on any machines, share the exports of a platform. What one of them executes when it ends is done by another one.',
  ],
  examples: [
    'sallyport export-worker --data-dir data',
    'sallyport export-worker --config platform.json --runs 4',
  ],
  exitCodes: [
    ['0', 'ended by SIGTERM or SIGINT'],
    ['1', 'an error of the machine'],
    ['2', 'the command line or the configuration must be corrected'],
  ],
} as const satisfies CommandDeclaration;
