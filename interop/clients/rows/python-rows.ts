// Python with the libraries that agents use.
import type { ClientRow, Cure } from '../client-row.ts';
import { pythonVersion } from './versions.ts';

type Library = {
  readonly name: string;
  readonly shown?: string;
  /** The distribution; undefined: part of Python. */
  readonly pip?: string;
  /** The function of the script. */
  readonly call: string;
  readonly folder?: string;
  readonly requests: number;
  readonly streams?: true;
  readonly token?: true;
  readonly cure?: Cure;
};

const call = (name: string): string => `{python}/bin/python {programs}/python_clients.py ${name}`;

const libraries: readonly Library[] = [
  { name: 'urllib', call: 'urllib', requests: 5, streams: true },
  { name: 'requests', pip: 'requests', call: 'requests', requests: 5, streams: true, token: true },
  { name: 'httpx', pip: 'httpx', call: 'httpx', requests: 5, streams: true },
  {
    ...{ name: 'httpx-h2', shown: 'httpx, `http2=True`', pip: 'httpx', call: 'httpx_h2' },
    ...{ requests: 5, streams: true },
  },
  {
    ...{ name: 'aiohttp', pip: 'aiohttp', call: 'aiohttp', requests: 5, streams: true },
    cure: { text: '`ClientSession(trust_env=True)`', command: call('aiohttp_env') },
  },
  {
    ...{ name: 'aiohttp-env', shown: 'aiohttp, `trust_env=True`', pip: 'aiohttp', call: 'aiohttp_env' },
    ...{ requests: 5, streams: true },
  },
  {
    ...{ name: 'aiohttp-websocket', shown: 'aiohttp `ws_connect`, `trust_env=True`' },
    ...{ pip: 'aiohttp', call: 'aiohttp_websocket', requests: 1 },
  },
  {
    ...{ name: 'urllib3', shown: 'urllib3 `PoolManager`', pip: 'urllib3', call: 'urllib3' },
    ...{ requests: 5, streams: true },
    cure: { text: "`urllib3.ProxyManager(os.environ['HTTPS_PROXY'])`", command: call('urllib3_proxy') },
  },
  { name: 'httplib2', shown: 'httplib2 with PySocks', pip: 'httplib2', call: 'httplib2', requests: 4 },
  {
    ...{ name: 'pycurl', pip: 'pycurl', call: 'pycurl', requests: 4 },
    cure: {
      text: "`c.setopt(c.CAINFO, os.environ['SSL_CERT_FILE'])`",
      command: call('pycurl_cainfo'),
    },
  },
  {
    ...{ name: 'niquests', pip: 'niquests', call: 'niquests', folder: 'niquests' },
    ...{ requests: 5, streams: true },
  },
  {
    ...{ name: 'curl-cffi', shown: 'curl_cffi', pip: 'curl_cffi', call: 'curl_cffi', folder: 'curl-cffi' },
    ...{ requests: 5, streams: true },
  },
  {
    ...{ name: 'curl-cffi-chrome', shown: 'curl_cffi, `impersonate="chrome"`', pip: 'curl_cffi' },
    ...{ call: 'curl_cffi_chrome', folder: 'curl-cffi', requests: 5, streams: true },
  },
  { name: 'openai', shown: 'OpenAI SDK', pip: 'openai', call: 'openai', requests: 2, streams: true },
  {
    ...{ name: 'openai-async', shown: 'OpenAI SDK, 20 at once', pip: 'openai', call: 'openai_async' },
    requests: 20,
  },
  {
    ...{ name: 'anthropic', shown: 'Anthropic SDK', pip: 'anthropic', call: 'anthropic' },
    ...{ requests: 2, streams: true },
  },
  {
    ...{ name: 'genai', shown: 'Google Gen AI SDK', pip: 'google-genai', call: 'genai' },
    ...{ requests: 2, streams: true },
  },
  {
    ...{ name: 'langchain-openai', pip: 'langchain-openai', call: 'langchain_openai' },
    ...{ folder: 'langchain', requests: 2, streams: true },
  },
  { name: 'boto3', shown: 'boto3, S3', pip: 'boto3', call: 'boto3', requests: 3 },
  { name: 'grpcio', pip: 'grpcio', call: 'grpc', requests: 4, streams: true, token: true },
  {
    ...{ name: 'grpc-aio', shown: 'grpcio `grpc.aio`', pip: 'grpcio', call: 'grpc_aio' },
    ...{ requests: 3, streams: true },
  },
  { name: 'websockets', pip: 'websockets', call: 'websockets', requests: 1, token: true },
  {
    ...{ name: 'websockets-asyncio', shown: 'websockets, asyncio', pip: 'websockets' },
    ...{ call: 'websockets_asyncio', requests: 1 },
  },
  { name: 'websocket-client', pip: 'websocket-client', call: 'websocket_client', requests: 1 },
  { name: 'slack-sdk', shown: 'slack_sdk', pip: 'slack_sdk', call: 'slack_sdk', requests: 1 },
  {
    ...{ name: 'stripe', pip: 'stripe', call: 'stripe', requests: 1 },
    cure: {
      text: "`stripe.ca_bundle_path = os.environ['SSL_CERT_FILE']`",
      command: call('stripe_bundle'),
    },
  },
  { name: 'pygithub', shown: 'PyGithub', pip: 'PyGithub', call: 'pygithub', requests: 1 },
  {
    ...{ name: 'google-storage', shown: 'google-cloud-storage', pip: 'google-cloud-storage' },
    ...{ call: 'google_storage', folder: 'google-storage', requests: 1 },
  },
];

export const pythonRows: readonly ClientRow[] = libraries.map((library) => {
  const { name, shown = name, pip, call, folder = 'python', ...rest } = library;
  const python = `{${folder}}/bin/python`;
  return {
    ...rest,
    name: `python-${name}`,
    client: shown,
    group: 'python',
    needs: [folder],
    version: pip === undefined ? `${python} --version` : pythonVersion(folder, pip),
    command: `${python} {programs}/python_clients.py ${call}`,
  };
});
