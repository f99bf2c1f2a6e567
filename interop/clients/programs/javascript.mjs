// Clients for Node, Bun and Deno: `javascript.mjs CLIENT [FOLDER]`, where FOLDER has the npm packages. Each makes three GETs and
// one POST, if it can a stream too, and says how long the events of that took to arrive.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , client, folder = process.cwd()] = process.argv;
const require = createRequire(join(folder, 'package.json'));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

const API = 'https://api.test';
const BODY = 'x'.repeat(1000);
const messages = [{ role: 'user', content: 'hello' }];

async function measure(events) {
  const times = [];
  for await (const _ of events) times.push(performance.now());
  if (times.length === 0) throw new Error('no event has arrived');
  console.log(`spread ${Math.round(times.at(-1) - times[0])}`);
}

/** `get` and `post` resolve to the parsed body. */
async function tryAll({ get, post, stream }) {
  for (let i = 0; i < 3; i++) {
    const { method } = await get(`${API}/echo`);
    if (method !== 'GET') throw new Error(`the origin saw ${method}`);
  }
  const { bytes } = await post(`${API}/echo`, BODY);
  if (bytes !== BODY.length) throw new Error(`the origin read ${bytes} bytes`);
  if (stream) await measure(await stream(`${API}/stream`));
}

const withFetch = (fetch) => ({
  get: async (url) => (await fetch(url)).json(),
  post: async (url, body) => (await fetch(url, { method: 'POST', body })).json(),
  stream: async (url) => (await fetch(url)).body,
});

async function withNodeHttps() {
  const https = await import('node:https');
  const open = (url, method, body) =>
    new Promise((resolve, reject) => https.request(url, { method }, resolve).on('error', reject).end(body));
  const read = async (message) => {
    let text = '';
    for await (const piece of message) text += piece;
    return JSON.parse(text);
  };
  return {
    get: async (url) => read(await open(url, 'GET')),
    post: async (url, body) => read(await open(url, 'POST', body)),
    stream: (url) => open(url, 'GET'),
  };
}

async function withUndici() {
  const { request } = require('undici');
  return {
    get: async (url) => (await request(url)).body.json(),
    post: async (url, body) => (await request(url, { method: 'POST', body })).body.json(),
    stream: async (url) => (await request(url)).body,
  };
}

function withNeedle(defaults) {
  const needle = require('needle');
  if (defaults !== undefined) needle.defaults(defaults);
  return {
    get: async (url) => (await needle('get', url)).body,
    post: async (url, body) => (await needle('post', url, body)).body,
  };
}

const libraries = {
  fetch: () => withFetch(fetch),
  https: withNodeHttps,
  undici: withUndici,
  'undici-env': async () => {
    const { setGlobalDispatcher, EnvHttpProxyAgent } = require('undici');
    setGlobalDispatcher(new EnvHttpProxyAgent());
    return withUndici();
  },
  axios: async () => {
    const axios = require('axios');
    return {
      get: async (url) => (await axios.get(url)).data,
      post: async (url, body) => (await axios.post(url, body)).data,
      stream: async (url) => (await axios.get(url, { responseType: 'stream' })).data,
    };
  },
  got: async () => {
    const { got } = await load('got');
    const retry = { limit: 0 };
    return {
      get: (url) => got(url, { retry }).json(),
      post: (url, body) => got.post(url, { body, retry }).json(),
      stream: (url) => got.stream(url),
    };
  },
  'node-fetch': async () => withFetch((await load('node-fetch')).default),
  'cross-fetch': async () => withFetch(require('cross-fetch')),
  ky: async () => withFetch((await load('ky')).default.create({ retry: 0 })),
  ofetch: async () => {
    const { ofetch } = await load('ofetch');
    return {
      get: (url) => ofetch(url, { retry: 0 }),
      post: (url, body) => ofetch(url, { method: 'POST', body, retry: 0 }),
    };
  },
  needle: () => withNeedle(),
  'needle-agent': async () => {
    const { globalAgent } = await import('node:https');
    return withNeedle({ use_proxy_from_env_var: false, agent: globalAgent });
  },
  superagent: async () => {
    const superagent = require('superagent');
    return {
      get: async (url) => (await superagent.get(url)).body,
      post: async (url, body) => (await superagent.post(url).type('text/plain').send(body)).body,
    };
  },
  gaxios: async () => {
    const { Gaxios } = require('gaxios');
    const gaxios = new Gaxios();
    return {
      get: async (url) => (await gaxios.request({ url, responseType: 'json' })).data,
      post: async (url, body) =>
        (await gaxios.request({ url, method: 'POST', body, responseType: 'json' })).data,
    };
  },
  azure: async () => {
    const { createDefaultHttpClient, createPipelineFromOptions, createPipelineRequest } =
      require('@azure/core-rest-pipeline');
    const pipeline = createPipelineFromOptions({ retryOptions: { maxRetries: 0 } });
    const http = createDefaultHttpClient();
    const send = async (options) =>
      JSON.parse((await pipeline.sendRequest(http, createPipelineRequest(options))).bodyAsText);
    return { get: (url) => send({ url }), post: (url, body) => send({ url, method: 'POST', body }) };
  },
};

function echoThrough(socket) {
  return new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('hello');
    socket.onerror = (event) => reject(event.error ?? new Error(event.message ?? 'the WebSocket failed'));
    socket.onmessage = ({ data }) => {
      socket.close();
      if (data === 'hello') resolve();
      else reject(new Error(`the origin sent ${data}`));
    };
  });
}

const pick = async function* (chunks, textOf) {
  for await (const chunk of chunks) {
    const text = textOf(chunk);
    if (text) yield text;
  }
};

/** Clients with calls of their own. */
const others = {
  websocket: () => echoThrough(new WebSocket('wss://ws.test/')),
  'websocket-bun': () => echoThrough(new WebSocket('wss://ws.test/', { proxy: process.env.HTTPS_PROXY })),
  ws: () => echoThrough(new (require('ws'))('wss://ws.test/')),
  'ws-agent': async () => {
    const https = await import('node:https');
    await echoThrough(new (require('ws'))('wss://ws.test/', { agent: https.globalAgent }));
  },
  http2: () => throughHttp2({}),
  'http2-connect': async () => throughHttp2({ createConnection: await connectByHand('api.test', 443) }),
  openai: async () => {
    const { default: OpenAI } = await load('openai');
    const api = new OpenAI({ baseURL: `${API}/v1`, maxRetries: 0 });
    await api.chat.completions.create({ model: 'model', messages });
    const chunks = await api.chat.completions.create({ model: 'model', messages, stream: true });
    await measure(pick(chunks, ({ choices }) => choices[0]?.delta?.content));
  },
  anthropic: async () => {
    const { default: Anthropic } = await load('@anthropic-ai/sdk');
    const api = new Anthropic({ baseURL: API, maxRetries: 0 });
    const request = { model: 'model', max_tokens: 10, messages };
    await api.messages.create(request);
    const chunks = await api.messages.create({ ...request, stream: true });
    await measure(pick(chunks, ({ type, delta }) => type === 'content_block_delta' && delta.text));
  },
  genai: async () => {
    const { GoogleGenAI } = await load('@google/genai');
    const api = new GoogleGenAI({ apiKey: 'placeholder', httpOptions: { baseUrl: API } });
    const request = { model: 'model', contents: 'hello' };
    await api.models.generateContent(request);
    await measure(pick(await api.models.generateContentStream(request), ({ text }) => text));
  },
  'langchain-openai': async () => {
    const { ChatOpenAI } = await load('@langchain/openai');
    const model = new ChatOpenAI({ model: 'model', maxRetries: 0, configuration: { baseURL: `${API}/v1` } });
    await model.invoke('hello');
    await measure(pick(await model.stream('hello'), ({ content }) => content));
  },
  'ai-sdk': async () => {
    const { createOpenAI } = await load('@ai-sdk/openai');
    const { streamText } = await load('ai');
    const { chat } = createOpenAI({ baseURL: `${API}/v1` });
    await measure(streamText({ model: chat('model'), prompt: 'hello', maxRetries: 0 }).textStream);
  },
  grpc: async () => {
    const grpc = require('@grpc/grpc-js');
    const api = new grpc.Client('grpc.test:443', grpc.credentials.createSsl());
    const [write, read] = [(text) => Buffer.from(text), (bytes) => bytes.toString()];
    const call = () =>
      new Promise((resolve, reject) => {
        const options = { deadline: Date.now() + 10_000 };
        const end = (error, text) => (error ? reject(error) : resolve(text));
        api.makeUnaryRequest('/tests.Api/Unary', write, read, 'hello', new grpc.Metadata(), options, end);
      });
    if ((await call()) !== 'hello') throw new Error('the origin sent something else');
    await call();
    await measure(api.makeServerStreamRequest('/tests.Api/Count', write, read, 'hello'));
    api.close();
  },
  octokit: async () => {
    const { Octokit } = await load('@octokit/rest');
    const api = new Octokit({ auth: 'placeholder', baseUrl: 'https://github.test/api/v3' });
    await api.users.getAuthenticated();
  },
  slack: async () => {
    const { WebClient } = require('@slack/web-api');
    await new WebClient('placeholder', {
      slackApiUrl: `${API}/api/`,
      retryConfig: { retries: 0 },
    }).auth.test();
  },
  stripe: async () => {
    const { default: Stripe } = await load('stripe');
    const api = new Stripe('placeholder', { host: 'api.test', maxNetworkRetries: 0, telemetry: false });
    await api.customers.list();
  },
  s3: async () => {
    const {
      S3Client,
      ListBucketsCommand,
      PutObjectCommand,
      GetObjectCommand,
    } = require('@aws-sdk/client-s3');
    const api = new S3Client({
      endpoint: 'https://s3.test',
      region: 'us-east-1',
      forcePathStyle: true,
      maxAttempts: 1,
      credentials: { accessKeyId: 'placeholder', secretAccessKey: 'placeholder' },
    });
    await api.send(new ListBucketsCommand({}));
    const object = { Bucket: 'bucket', Key: 'object' };
    await api.send(new PutObjectCommand({ ...object, Body: BODY }));
    const { Body } = await api.send(new GetObjectCommand(object));
    if ((await Body.transformToString()) !== BODY) throw new Error('the object came back changed');
  },
  eventsource: async () => {
    const { EventSource } = require('eventsource');
    const source = new EventSource(`${API}/stream`);
    const times = [];
    await new Promise((resolve, reject) => {
      source.onmessage = () => times.push(performance.now()) === 5 && resolve();
      source.onerror = ({ message }) => reject(new Error(message));
    });
    source.close();
    console.log(`spread ${Math.round(times.at(-1) - times[0])}`);
  },
  playwright: () => openPage({}),
};

async function throughHttp2({ createConnection }) {
  const http2 = await import('node:http2');
  const session = http2.connect(API, createConnection === undefined ? {} : { createConnection });
  await new Promise((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({ ':path': '/echo' });
    stream.on('response', ({ ':status': status }) =>
      status === 200 ? resolve() : reject(new Error(`status ${status}`)),
    );
    stream.on('error', reject).resume();
  });
  session.close();
}

async function connectByHand(host, port) {
  const [http, tls] = [await import('node:http'), await import('node:tls')];
  const proxy = new URL(process.env.HTTPS_PROXY);
  const path = `${host}:${port}`;
  const { promise, resolve, reject } = Promise.withResolvers();
  const request = http.request({
    host: proxy.hostname,
    port: proxy.port,
    method: 'CONNECT',
    path,
    agent: false,
  });
  request
    .on('connect', (_, socket) => resolve(socket))
    .on('error', reject)
    .end();
  const socket = await promise;
  return () => tls.connect({ socket, servername: host, ALPNProtocols: ['h2'] });
}

async function openPage(options) {
  const { chromium } = require('playwright-core');
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args, ...options });
  try {
    const page = await browser.newPage();
    await page.goto(`${API}/page`, { timeout: 15_000 });
    await page.waitForFunction(() => document.title === 'done');
    console.log(await page.innerText('#result'));
  } finally {
    await browser.close();
  }
}

try {
  if (Object.hasOwn(others, client)) await others[client]();
  else if (Object.hasOwn(libraries, client)) await tryAll(await libraries[client]());
  else throw new Error(`there is no client ${client}`);
} catch (error) {
  const causes = [];
  for (let cause = error; cause !== undefined && causes.length < 5; cause = cause.cause)
    causes.push(`${cause.code ?? cause.name}: ${cause.message}`);
  console.error(causes.join('; caused by '));
  process.exit(1);
}
// Connections that stay open must not keep it alive.
process.exit(0);
