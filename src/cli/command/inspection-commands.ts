// The declarations of the commands that look at files or at a running proxy and change nothing.
import type { CommandDeclaration } from './declaration.ts';

const json = { type: 'boolean', text: 'print one JSON document' } as const;
const INVALID = ['2', 'the command line or a file must be corrected'] as const;

export const checkCommand = {
  name: 'check',
  summary: 'validate config and proxy_config files',
  operands: 'FILE...',
  options: {
    'secrets-dir': { type: 'string', value: 'DIR', text: 'secrets that the rules use must exist in DIR' },
    json,
  },
  notes: [
    'FILE may be -, which is standard input. A proxy_config may be wrapped as the admin API returns it.',
    'A warning is about what is valid and probably not meant.',
  ],
  examples: [
    'sallyport check config.json rules.json',
    'sallyport check --secrets-dir secrets rules.json',
    'curl -sH "$AUTH" http://127.0.0.1:3129/v1/proxy_config | sallyport check -',
  ],
  exitCodes: [['0', 'every file is valid'], INVALID],
} as const satisfies CommandDeclaration;
