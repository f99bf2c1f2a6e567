// The declaration of `sallyport agent-server`.
import type { CommandDeclaration } from './declaration.ts';

export const agentServerCommand = {
  name: 'agent-server',
  summary: 'serve the graphs of a graph configuration file',
  options: {
    config: {
      type: 'string',
      value: 'FILE',
      text: 'graph configuration file',
      fallback: 'langgraph.json',
    },
    listen: {
      type: 'string',
      value: 'HOST:PORT|unix:PATH',
      text: 'address of the API',
      variable: 'SALLYPORT_AGENT_LISTEN',
      fallback: '127.0.0.1:2024',
    },
    'data-dir': {
      type: 'string',
      value: 'DIR',
      text: 'directory of the embedded database, the master key and the bundles',
      variable: 'SALLYPORT_AGENT_DATA_DIR',
      fallback: '~/.local/state/sallyport/agent-server',
    },
    auth: {
      type: 'string',
      value: 'none',
      text: 'off loopback, without a handler and without keys: everybody is let in',
      variable: 'SALLYPORT_AGENT_AUTH',
    },
    'key-file': {
      type: 'string',
      value: 'FILE',
      text: 'keys that are accepted, one a line',
      variable: 'SALLYPORT_AGENT_KEY_FILE',
    },
    studio: { type: 'boolean', text: 'on loopback: accept the header of the studio without a key' },
  },
  notes: [
    'Graphs and handlers run in child processes with the packages of their own folder.',
    'Off loopback the configuration needs auth.path, or --key-file or --auth none must be given.',
  ],
  examples: [
    'sallyport agent-server --config langgraph.json',
    'sallyport agent-server --config app/langgraph.json --listen unix:/run/agents/api.sock',
    'sallyport agent-server --listen 0.0.0.0:2024 --key-file keys.txt',
  ],
  exitCodes: [
    ['0', 'ended by SIGTERM or SIGINT, after its runs have ended or were given back'],
    ['1', 'the database ended by itself, or an error of the machine'],
    ['2', 'the command line, the configuration or a source must be corrected'],
  ],
} as const satisfies CommandDeclaration;
