// The operator of the canary test: reads everything, and sends invalid requests with a secret in every place. Every response
// is recorded, except for a token that is shown once.
import { WireClient } from '../support/wire-client.ts';
import { VISIBLE, sandboxesWith, secretChangesWith, secretEverywhere } from './canary-documents.ts';
import type { CanaryProxy, CanaryScene } from './canary-scene.ts';

export type AdminAsk = {
  readonly method?: string;
  readonly token?: string;
  readonly type?: string;
  /** Text is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly fields?: readonly string[];
  /** The one response that may contain the token that it created. */
  readonly reportsToken?: boolean;
};

/** Returns status and body; everything received is recorded. */
export async function administer(
  scene: CanaryScene,
  proxy: CanaryProxy,
  path: string,
  options: AdminAsk = {},
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const { body, method = 'GET', token = scene.values.adminToken, type = 'application/json' } = options;
  const content = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    ...(token === '' ? [] : [`Authorization: Bearer ${token}`]),
    ...(body === undefined ? [] : [`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(content)}`]),
    ...(options.fields ?? []),
  ];
  const text = await converse(proxy, `${lines.join('\r\n')}\r\n\r\n${content}`);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
  const response = text.slice(text.indexOf('\r\n\r\n') + 4);
  const parsed = response.startsWith('{') ? JSON.parse(response) : {};
  if (method !== 'GET') scene.statuses.push(`${method} ${path} ${status}`);
  scene.keep('admin responses', options.reportsToken ? text.replace(`"token":"${parsed.token}"`, '') : text);
  return { status, body: parsed };
}

/** Every GET route, of every sandbox. */
export async function readEverything(scene: CanaryScene, proxy: CanaryProxy): Promise<void> {
  const { body } = await administer(scene, proxy, '/');
  const routes = body['routes'] as readonly { readonly method: string; readonly path: string }[];
  for (const { method, path } of routes) {
    // Without an end is the stream of the records, whose lines are those of the log.
    if (method !== 'GET' || path === '/v1/records') continue;
    const paths = path.includes('{id}')
      ? ['default', 'tenant', 'own'].map((id) => path.replace('{id}', id))
      : [path];
    for (const one of paths) await administer(scene, proxy, one);
  }
  if (!scene.sinks.get('admin responses')?.includes(VISIBLE))
    throw new Error('GET did not show the documents');
}

/** Requests that are rejected, with the secret in every place where a client can put one. Returns the statuses. */
export async function writeWrongly(scene: CanaryScene, proxy: CanaryProxy): Promise<readonly number[]> {
  const { opaque: secret } = scene.values;
  const bodies: readonly (readonly [path: string, AdminAsk])[] = [
    ...secretEverywhere(secret).map((body) => [CONFIG, { body }] as const),
    ...[secret, `{"${secret}`, `{"a": "${secret}", "a": ${secret}}`].map(
      (body) => [CONFIG, { body }] as const,
    ),
    ...sandboxesWith(secret).map((body) => ['/v1/sandboxes', { method: 'POST', body }] as const),
    ...sandboxesWith(secret).map((body) => ['/v1/sandboxes/tenant', { method: 'PATCH', body }] as const),
    ...secretChangesWith(secret).map((body) => ['/v1/workspace_secrets', { body }] as const),
    ...headsWith(scene.values),
  ];
  const statuses: number[] = [];
  for (const [path, options] of bodies)
    statuses.push((await administer(scene, proxy, path, { method: 'PUT', ...options })).status);
  for (const bytes of [`GET / HTTP/1.1\r\n${secret}\r\n\r\n`, `${secret}\r\n\r\n`]) {
    const response = await converse(proxy, bytes);
    scene.keep('admin responses', response);
    statuses.push(Number(response.slice(9, 12)));
  }
  return statuses;
}

const CONFIG = '/v1/proxy_config';

function headsWith({
  opaque: secret,
  wrongAdminToken: wrong,
}: CanaryScene['values']): readonly (readonly [string, AdminAsk])[] {
  const encoded = encodeURIComponent(secret);
  const body = {};
  return [
    [`${CONFIG}?key=${encoded}`, { body }],
    [CONFIG, { body, type: secret }],
    [CONFIG, { body: { description: secret.repeat(30_000) } }],
    ...[
      `Content-Encoding: ${secret}`,
      `Expect: ${secret}`,
      `If-Match: ${secret}`,
      `If-Match: "${encoded}"`,
    ].map((field) => [CONFIG, { body, fields: [field] }] as const),
    [CONFIG, { method: 'DELETE', fields: [`X-Other: ${secret}`] }],
    [`/v1/sandboxes/${encoded}`, { method: 'DELETE' }],
    [`/v1/${encoded}`, { method: 'GET' }],
    [CONFIG, { method: 'GET', token: '' }],
    [CONFIG, { method: 'GET', token: wrong }],
    [CONFIG, { token: wrong, body }],
    [CONFIG, { method: 'GET', token: '', fields: [`X-Api-Key: ${wrong}`] }],
    [CONFIG, { body, token: '', fields: [`Authorization: Basic ${Buffer.from(wrong).toString('base64')}`] }],
  ];
}

async function converse({ adminPort }: CanaryProxy, bytes: string): Promise<string> {
  await using client = await WireClient.connect(adminPort);
  await client.send(Buffer.from(bytes));
  await client.finished;
  return client.transcript;
}
