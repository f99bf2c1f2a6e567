// The declaration of `sallyport runner`.
import type { CommandDeclaration } from './declaration.ts';

export const runnerCommand = {
  name: 'runner',
  summary: 'build and run the deployments of a platform on this machine',
  options: {
    config: { type: 'string', value: 'FILE', text: 'config file of the platform' },
    'data-dir': {
      type: 'string',
      value: 'DIR',
      text: 'data directory of the platform',
      variable: 'SALLYPORT_PLATFORM_DATA_DIR',
      fallback: '~/.local/state/sallyport/platform',
    },
    listen: {
      type: 'string',
      value: 'HOST:PORT',
      text: 'where clients reach deployments',
      variable: 'SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN',
      fallback: '127.0.0.1:8090',
    },
    isolation: {
      type: 'string',
      value: 'auto|bubblewrap|user|none',
      text: 'what keeps deployments from the machine and from each other',
      variable: 'SALLYPORT_PLATFORM_RUNNER_ISOLATION',
      fallback: 'auto',
    },
  },
  notes: [
    'The platform starts it unless SALLYPORT_PLATFORM_RUNNER_START is false. It reads the same settings as the platform.',
    'Everything that it runs ends with it, and is started again by the next one.',
  ],
  examples: ['sallyport runner --data-dir data', 'sallyport runner --config platform.json --isolation user'],
  exitCodes: [
    ['0', 'ended by SIGTERM or SIGINT'],
    ['1', 'an error of the machine'],
    ['2', 'the command line or the configuration must be corrected, or another runner uses the directory'],
  ],
} as const satisfies CommandDeclaration;
