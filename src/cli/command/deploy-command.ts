// The declaration of `sallyport deploy`.
import type { CommandDeclaration } from './declaration.ts';

export const connectionOptions = {
  'host-url': {
    type: 'string',
    value: 'URL',
    text: 'the platform',
    variable: 'SALLYPORT_API_URL',
    fallback: 'http://127.0.0.1:8080',
  },
  'api-key-file': {
    type: 'string',
    value: 'FILE',
    text: 'file with an API key of the platform; - is standard input',
    variable: 'SALLYPORT_API_KEY_FILE',
  },
  'api-key': {
    type: 'string',
    value: 'KEY',
    text: 'the API key itself; every user of this machine can read it in the list of processes',
    variable: 'SALLYPORT_API_KEY',
  },
  workspace: {
    type: 'string',
    value: 'ID',
    text: 'the workspace, for a key of several',
    variable: 'SALLYPORT_API_WORKSPACE',
  },
} as const;

export const deployCommand = {
  name: 'deploy',
  summary: 'deploy a directory to a platform, and look after deployments',
  operands: '[DIR] | list | revisions NAME | logs NAME | rollback NAME [REVISION] | delete NAME',
  options: {
    name: {
      type: 'string',
      value: 'NAME',
      text: 'name of the deployment; by default that of the directory',
    },
    config: {
      type: 'string',
      value: 'FILE',
      text: 'graph configuration file, relative to DIR',
      fallback: 'langgraph.json',
    },
    'secrets-file': {
      type: 'string',
      value: 'FILE',
      text: 'secrets, NAME=value on each line; by default what `env` of the configuration file names',
    },
    'proxy-profile': {
      type: 'string',
      value: 'NAME',
      text: 'proxy profile of the deployment, by its name or id',
    },
    'install-command': {
      type: 'string',
      value: 'COMMAND',
      text: 'in place of what the lock file asks for',
    },
    'build-command': {
      type: 'string',
      value: 'COMMAND',
      text: 'runs after the installation, in the directory of the configuration file',
    },
    'no-wait': { type: 'boolean', text: 'return when the revision is queued' },
    build: { type: 'boolean', text: 'logs: of the build, in place of what runs' },
    follow: { type: 'boolean', text: 'logs: print new lines until the command is ended' },
    revision: {
      type: 'string',
      value: 'ID',
      text: 'logs: of this revision; with --build the newest by default, otherwise of all',
    },
    level: { type: 'string', value: 'LEVEL', text: 'logs: of this level, such as ERROR' },
    yes: { type: 'boolean', text: 'delete: without a question' },
    json: { type: 'boolean', text: 'print the result as one JSON document; of logs one for each line' },
    ...connectionOptions,
  },
  notes: [
    'DIR (by default the current one) is packed with the files that .gitignore and .dockerignore do not name, without links; node_modules and .git are never packed. The platform installs, builds and starts it.',
    'NAME is the name or the id of a deployment. rollback deploys the revision before the active one again, or REVISION; its build is kept.',
    'The progress goes to standard error, the result to standard output.',
  ],
  examples: [
    'sallyport deploy . --name support-agent --secrets-file secrets.env',
    'sallyport deploy logs support-agent --follow',
    'sallyport deploy rollback support-agent',
  ],
  exitCodes: [
    ['0', 'deployed, or done'],
    ['1', 'a build or a start failed, or the platform cannot be reached'],
    ['2', 'the command line, the directory or something that the platform rejects must be corrected'],
  ],
} as const satisfies CommandDeclaration;
