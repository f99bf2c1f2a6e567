// The declarations of the commands of the platform.
import type { CommandDeclaration } from './declaration.ts';

const config = { type: 'string', value: 'FILE', text: 'config file of the platform' } as const;
const dataDir = {
  type: 'string',
  value: 'DIR',
  text: 'directory of the embedded database and of the keys',
  variable: 'SALLYPORT_PLATFORM_DATA_DIR',
  fallback: '~/.local/state/sallyport/platform',
} as const;

export const platformCommand = {
  name: 'platform',
  summary: 'run the platform API, or create a key for it',
  operands: '[serve|migrate|init|recover|rewrap|organization (create|set)]',
  options: {
    config,
    listen: {
      type: 'string',
      value: 'HOST:PORT',
      text: 'address of the API',
      variable: 'SALLYPORT_PLATFORM_LISTEN',
      fallback: '127.0.0.1:8080',
    },
    role: {
      type: 'string',
      value: 'serve|work|both',
      text: 'serve: requests, work: jobs, or both in one process',
      variable: 'SALLYPORT_PLATFORM_ROLE',
      fallback: 'both',
    },
    'metrics-listen': {
      type: 'string',
      value: 'HOST:PORT',
      text: 'address of the metrics and of the readiness, /ok',
      variable: 'SALLYPORT_PLATFORM_METRICS_LISTEN',
    },
    'data-dir': dataDir,
    name: { type: 'string', value: 'NAME', text: 'init, organization: its name', fallback: 'Default' },
    organization: { type: 'string', value: 'ID', text: 'recover, organization set: its id' },
    plan: {
      type: 'string',
      value: 'PLAN',
      text: 'organization: its plan; enterprise for a new one',
    },
    personal: { type: 'string', value: 'yes|no', text: 'organization: whether it is personal' },
    'audit-logs': {
      type: 'string',
      value: 'yes|no|default',
      text: 'organization: whether it may read its audit log (can_use_audit_logs)',
    },
    'new-master-key': { type: 'boolean', text: 'rewrap: first add a new master key to the file' },
  },
  notes: [
    'serve (the default) runs the API. migrate brings the schema of the database to this version, as its owner. init creates the first organization and its API key. recover creates another key.',
    'organization create adds an organization with a workspace and a key; organization set changes its name, plan and flags.',
    'rewrap wraps the data keys of the vault with the first master key of its file, while platforms run.',
    'A key is printed once, to standard output; everything else goes to standard error.',
  ],
  examples: [
    'sallyport platform init --data-dir data',
    'sallyport platform --data-dir data',
    'sallyport platform organization set --organization ID --audit-logs yes',
  ],
  exitCodes: [
    ['0', 'ended by SIGTERM or SIGINT; migrate, init, recover, rewrap and organization: done'],
    ['1', 'the database ended by itself, or an error of the machine'],
    ['2', 'the command line or the configuration must be corrected'],
  ],
} as const satisfies CommandDeclaration;

export const auditCommand = {
  name: 'audit',
  summary: "check the platform's audit log for tampering",
  operands: 'verify',
  options: {
    organization: { type: 'string', value: 'ID', text: 'check one organization only' },
    config,
    'data-dir': dataDir,
    checkpoints: {
      type: 'string',
      value: 'LOCATION',
      text: 'file or bucket of the signed checkpoints',
      variable: 'SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS',
    },
    'public-key': {
      type: 'string',
      multiple: true,
      value: 'FILE',
      text: 'public key of the checkpoints; may be repeated',
    },
  },
  examples: ['sallyport audit verify --data-dir data'],
  exitCodes: [
    ['0', 'intact'],
    ['1', 'tampered with'],
    ['2', 'the command line or the configuration must be corrected'],
    ['3', 'could not be determined, or nothing was compared with a signed checkpoint'],
  ],
} as const satisfies CommandDeclaration;

/** Internal: the platform starts it, and it is in no overview. */
export const boxHostCommand = {
  name: 'box-host',
  summary: 'run the boxes of this machine (started by the platform)',
  options: {
    directory: { type: 'string', value: 'DIR', text: 'directory of its sockets and files, mode 0700' },
    runtime: {
      type: 'string',
      value: 'RUNTIME',
      text: 'bubblewrap (isolated boxes), attached (boxes that somebody else runs), or auto',
      fallback: 'attached',
    },
    'attached-listen': {
      type: 'string',
      value: 'ADDRESS:PORTS',
      text: 'where attached boxes find their proxy',
      fallback: '127.0.0.1:0',
    },
    'sidecar-config': { type: 'string', value: 'FILE', text: 'config file of the sidecars of boxes' },
  },
  examples: ['sallyport box-host --directory ~/.local/state/sallyport/platform/box-host'],
  exitCodes: [
    ['0', 'ended by SIGTERM or SIGINT, or without a platform for a minute'],
    ['1', 'an error of the machine, or a bug'],
    ['2', 'an option must be corrected, or another box host uses the directory'],
  ],
} as const satisfies CommandDeclaration;
