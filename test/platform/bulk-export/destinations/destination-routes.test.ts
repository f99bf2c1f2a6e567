// Destinations of bulk exports: stored only once a file could be written, and never shown with their credentials.
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import { openDestination } from '../../../../src/platform/bulk-export/destinations/bucket.ts';
import { openCredentials } from '../../../../src/platform/bulk-export/destinations/credentials.ts';
import { destinationConfig } from '../../../../src/platform/bulk-export/destinations/destination-schema.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { openS3Server, type S3Response, s3Error, type S3Server } from '../../../support/s3-server.ts';

const PATH = '/api/v1/bulk-exports/destinations';
const SECRET = 'canary-secret-of-a-destination';
const TOKEN = 'canary-session-token';
const LONG = 'x'.repeat(4 * 1024 * 1024);
const isOwnListener = () => false;

let s3: S3Server;
let api: PlatformApi;
let workspace: string;
let key: string;
let override: S3Response | undefined;

beforeAll(async () => {
  s3 = await openS3Server({ override: () => override });
  api = await createPlatformApi({
    config: {
      exports: {
        allowed_endpoints: [s3.endpoint, 'http://127.0.0.1:1'],
        cleartext_endpoints: [s3.endpoint, 'http://127.0.0.1:1'],
        allow_loopback: true,
      },
    },
  });
  const organization = await api.addOrganization();
  workspace = await api.addWorkspace(organization);
  key = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await s3[Symbol.asyncDispose]();
});
beforeEach(() => {
  override = undefined;
});

const ask = (method: string, path = PATH, body?: unknown) =>
  api.ask(method, path, { key, ...(body === undefined ? {} : { body }) });
const configOf = (more: object = {}) => ({
  ...{ bucket_name: 'traces', prefix: 'exports/a', endpoint_url: s3.endpoint },
  ...more,
});
const credentials = { access_key_id: 'AKIAEXAMPLE', secret_access_key: SECRET };
const destinationOf = (more: object = {}) => ({
  ...{ destination_type: 's3', display_name: "Team's bucket", config: configOf(), credentials },
  ...more,
});
const create = (more: object = {}) => ask('POST', PATH, destinationOf(more));
const written = () => s3.seen.filter(({ method }) => method === 'PUT').map(({ url }) => url);

describe('a new destination', () => {
  it('is tested by a file below tmp/ of the bucket, which is removed, and is shown without its credentials', async () => {
    const before = s3.seen.length;
    const { status, body } = await create();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ tenant_id: workspace, destination_type: 's3', display_name: "Team's bucket" },
      config: { ...configOf(), include_bucket_in_prefix: true },
      credentials_keys: ['access_key_id', 'secret_access_key'],
    });
    const requests = s3.seen.slice(before).map(({ method, url }) => `${method} ${url}`);
    expect(requests).toEqual([
      expect.stringMatching(/^PUT \/traces\/tmp\/[0-9a-f-]{36}\.txt\?/),
      expect.stringMatching(/^DELETE \/traces\/tmp\/[0-9a-f-]{36}\.txt\?/),
    ]);
    expect((await ask('GET', `${PATH}/${body.id}`)).body).toEqual(body);
    expect((await ask('GET')).body[0]).toEqual(body);
  });

  it('with a session token sends it, and lists its name', async () => {
    const { body } = await create({ credentials: { ...credentials, session_token: TOKEN } });
    expect(body.credentials_keys).toEqual(['access_key_id', 'secret_access_key', 'session_token']);
    expect(s3.seen.at(-1)?.headers['x-amz-security-token']).toBe(TOKEN);
  });

  it('whose endpoint holds the bucket is written below the root of the endpoint', async () => {
    const { status } = await create({ config: configOf({ include_bucket_in_prefix: false }) });
    expect(status).toBe(200);
    expect(written().at(-1)).toMatch(/^\/tmp\/[0-9a-f-]{36}\.txt\?/);
  });

  it('gets its bucket in the host name where addressing_style is virtual', async () => {
    const endpoint = s3.endpoint.replace('127.0.0.1', 'localhost');
    const { status, body } = await create({
      config: configOf({ endpoint_url: endpoint, config_kwargs_s3: { addressing_style: 'virtual' } }),
    });
    // Names below localhost are not resolved everywhere: what is refused is the list of endpoints.
    expect([status, body.detail[0].loc]).toEqual([422, ['body', 'config', 'endpoint_url']]);
  });

  it('passes on the options of objects', async () => {
    await create({ config: configOf({ s3_additional_kwargs: { ServerSideEncryption: 'AES256' } }) });
    const put = s3.seen.filter(({ method }) => method === 'PUT').at(-1);
    expect(put?.headers['x-amz-server-side-encryption']).toBe('AES256');
  });

  it.each([
    [s3Error(403, 'AccessDenied'), 'Access denied'],
    [s3Error(403, 'SignatureDoesNotMatch'), 'Access denied'],
    [s3Error(404, 'NoSuchBucket'), 'Bucket is not valid'],
    [s3Error(403, 'InvalidAccessKeyId'), 'Key ID you provided does not exist'],
    [s3Error(400, 'InvalidBucketName'), 'InvalidBucketName'],
    [{ status: 200, body: '<html>internal admin page</html>' }, 'Invalid endpoint'],
    [{ status: 404, body: '<html>internal admin page</html>' }, 'Invalid endpoint'],
    [{ status: 302, body: '' }, 'Invalid endpoint'],
  ])('whose service responds %o is refused with 400: %s', async (given, condition) => {
    override = given;
    const before = (await ask('GET')).body.length;
    const { status, body, text } = await create();
    expect(status).toBe(400);
    expect(body.detail.startsWith(condition)).toBe(true);
    expect(text).not.toContain('internal');
    override = undefined;
    expect((await ask('GET')).body.length).toBe(before);
  });

  it('whose prefix is so long that S3 would take no name of a file is refused with 422, and nothing is written', async () => {
    const longest = `${'a'.repeat(99)}/`.repeat(8).slice(0, 799);
    const { status } = await create({ config: configOf({ prefix: longest }) });
    expect(status).toBe(200);
    const [before, list] = [s3.seen.length, (await ask('GET')).body.length];
    const refused = await create({ config: configOf({ prefix: `${longest}b` }) });
    expect([refused.status, refused.body.detail]).toEqual([
      422,
      [
        expect.objectContaining({
          loc: ['body', 'config', 'prefix'],
          msg: expect.stringContaining('at most 799 characters: S3 allows names of 1024 bytes'),
        }),
      ],
    ]);
    expect([s3.seen.length, (await ask('GET')).body.length]).toEqual([before, list]);
  });

  it('that was stored with such a prefix takes no new credentials', async () => {
    const { body } = await create();
    const config = JSON.stringify({ ...body.config, prefix: 'a'.repeat(900) });
    await sql`update export_destinations set config = ${config} where id = ${body.id}`.execute(
      api.database.owner.db,
    );
    const before = s3.seen.length;
    const { status, body: refused } = await ask('PATCH', `${PATH}/${body.id}`, { credentials });
    expect([status, refused.detail]).toEqual([
      400,
      expect.stringMatching(/^Bucket is not valid: with the prefix/),
    ]);
    expect(s3.seen.length).toBe(before);
  });

  it('whose service sends a response without an end is refused with 400', async () => {
    const { status: given, body: text = '' } = s3Error(403, 'AccessDenied');
    override = { status: given, type: 'application/xml', body: text.replace('internal', LONG) };
    const { status, body } = await create();
    expect([status, body.detail.split(':')[0]]).toEqual([400, 'Invalid endpoint']);
  });

  it('of AWS is written to AWS, whatever storage the platform itself uses', async () => {
    const before = s3.seen.length;
    vi.stubEnv('AWS_ENDPOINT_URL_S3', s3.endpoint);
    try {
      const config = destinationConfig.parse({ bucket_name: 'traces', region: 'us-east-1' });
      const access = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: new Secret(SECRET) };
      const addresses = { allowAllPrivate: false, allowLoopback: true, allowCidrs: [], isOwnListener };
      await using bucket = await openDestination({ config, credentials: access, addresses, attempts: 1 });
      const put = new bucket.s3.PutObjectCommand({ ...bucket.object, Key: 'a', Body: 'a' });
      const seen = Promise.withResolvers<string>();
      // Nothing is sent: where it would go is all that is asked.
      bucket.client.middlewareStack.add(
        () => async (args) => {
          seen.resolve((args.request as { readonly hostname: string }).hostname);
          throw new Error('not sent');
        },
        { step: 'finalizeRequest', priority: 'low' },
      );
      await expect(bucket.client.send(put)).rejects.toThrow('not sent');
      expect(await seen.promise).toBe('traces.s3.us-east-1.amazonaws.com');
    } finally {
      vi.unstubAllEnvs();
    }
    expect(s3.seen.length).toBe(before);
  });

  it('whose endpoint nobody listens at is refused with 400', async () => {
    const { status, body } = await create({ config: configOf({ endpoint_url: 'http://127.0.0.1:1' }) });
    expect([status, body.detail.split(':')[0]]).toEqual([400, 'Invalid endpoint']);
  });

  it('of a service that is busy gets 503, and may be tried again', async () => {
    override = s3Error(503, 'SlowDown');
    const { status, headers } = await create();
    expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  });

  it.each([
    ['display_name', { display_name: 'a/b' }, ['body', 'display_name']],
    ['bucket', { config: { bucket_name: 'a?b', region: 'us-east-1' } }, ['body', 'config', 'bucket_name']],
    [
      'prefix',
      { config: { bucket_name: 'traces', prefix: '../x', region: 'us-east-1' } },
      ['body', 'config', 'prefix'],
    ],
    ['a missing region', { config: { bucket_name: 'traces' } }, ['body', 'config', 'endpoint_url']],
    ['missing credentials', { credentials: undefined }, ['body', 'credentials']],
    [
      'options',
      { config: { bucket_name: 'traces', config_kwargs_s3: { proxies: {} } } },
      ['body', 'config', 'config_kwargs_s3', 'proxies'],
    ],
    [
      'a role',
      { config: { bucket_name: 'traces', aws_role_arn: 'arn:aws:iam::1:role/x' } },
      ['body', 'config', 'aws_role_arn'],
    ],
    [
      'object options',
      { config: { bucket_name: 'traces', s3_additional_kwargs: { Tagging: 'a=b' } } },
      ['body', 'config', 's3_additional_kwargs', 'Tagging'],
    ],
  ])('with %s that cannot be used is refused with the place, and nothing is sent', async (_, more, loc) => {
    const before = s3.seen.length;
    const { status, body, text } = await create(more);
    expect(status).toBe(422);
    expect(body.detail.map((issue: { readonly loc: unknown }) => issue.loc)).toContainEqual(loc);
    expect(text).not.toContain(SECRET);
    expect(s3.seen.length).toBe(before);
  });
});

describe('an endpoint on this machine', () => {
  it.each(['127.0.0.1', 'localhost'])(
    'by the name %s is not connected to where the operator does not allow it',
    async (host) => {
      const endpoint = s3.endpoint.replace('127.0.0.1', host);
      await using closed = await createPlatformApi({
        config: { exports: { cleartext_endpoints: [endpoint] } },
      });
      const organization = await closed.addOrganization();
      const own = await closed.addServiceKey(
        organization,
        'WORKSPACE_ADMIN',
        await closed.addWorkspace(organization),
      );
      const before = s3.seen.length;
      const body = destinationOf({ config: configOf({ endpoint_url: endpoint }) });
      const refused = await closed.ask('POST', PATH, { key: own, body });
      expect([refused.status, refused.body.detail.split(':')[0]]).toEqual([400, 'Invalid endpoint']);
      expect(s3.seen.length).toBe(before);
    },
  );
});

it('a destination of another organization waits for no endpoints that do not respond', async () => {
  const organization = await api.addOrganization();
  const other = await api.addWorkspace(organization);
  const keys = await Promise.all(
    Array.from({ length: 8 }, () => api.addServiceKey(organization, 'WORKSPACE_ADMIN', other)),
  );
  const served = s3.server.listeners('request')[0] as (...given: unknown[]) => void;
  const waiting: ServerResponse[] = [];
  const isFull = Promise.withResolvers<void>();
  s3.server.removeAllListeners('request').on('request', (request, response) => {
    if (!request.url?.startsWith('/silent/')) return served(request, response);
    if (waiting.push(response) === 32) isFull.resolve();
  });
  try {
    const body = destinationOf({ config: configOf({ bucket_name: 'silent' }) });
    const asked = keys.flatMap((one) => [1, 2, 3, 4].map(() => api.ask('POST', PATH, { key: one, body })));
    await isFull.promise;
    expect((await create()).status).toBe(200);
    for (const response of waiting) response.writeHead(403).end();
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([400]));
  } finally {
    s3.server.removeAllListeners('request').on('request', served);
  }
});

describe('new credentials of a destination', () => {
  it('are stored once a file could be written with them, and replace the stored ones', async () => {
    const { body } = await create();
    const next = { access_key_id: 'AKIANEXT', secret_access_key: 'next-secret', session_token: TOKEN };
    const changed = await ask('PATCH', `${PATH}/${body.id}`, { credentials: next });
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({
      ...body,
      updated_at: expect.any(String),
      credentials_keys: ['access_key_id', 'secret_access_key', 'session_token'],
    });
    expect(s3.seen.at(-1)?.headers.authorization).toContain('AKIANEXT');
    const { db } = api.database.owner;
    const place = { workspaceId: workspace, destinationId: body.id as string };
    const parts = { vault: api.vault, db };
    expect(await openCredentials(parts, { ...place, version: 1 })).toBeUndefined();
    const opened = await openCredentials(parts, { ...place, version: 2 });
    expect(opened?.secretAccessKey.reveal()).toBe('next-secret');
  });

  it('that lack the permission to write are refused, and the stored ones stay', async () => {
    const { body } = await create();
    override = s3Error(403, 'AccessDenied');
    const changed = await ask('PATCH', `${PATH}/${body.id}`, { credentials });
    expect([changed.status, changed.body.detail.split(':')[0]]).toEqual([400, 'Access denied']);
    override = undefined;
    expect((await ask('GET', `${PATH}/${body.id}`)).body).toEqual(body);
  });

  it('are sent to no endpoint that the operator allows no more', async () => {
    const { body } = await create();
    const { db } = api.database.owner;
    const config = { ...body.config, endpoint_url: s3.endpoint.replace('127.0.0.1', 'localhost') };
    await sql`update export_destinations set config = ${JSON.stringify(config)} where id = ${body.id}`.execute(
      db,
    );
    const before = s3.seen.length;
    const changed = await ask('PATCH', `${PATH}/${body.id}`, { credentials });
    expect([changed.status, changed.body.detail.split(':')[0]]).toEqual([400, 'Invalid endpoint']);
    expect(s3.seen.length).toBe(before);
  });

  it('of a destination of nobody, or of another workspace, are 404 before anything is sent', async () => {
    const organization = await api.addOrganization();
    const foreign = await api.addWorkspace(organization);
    const other = await api.addServiceKey(organization, 'WORKSPACE_ADMIN', foreign);
    const { body } = await create();
    const before = s3.seen.length;
    const responses = [
      await ask('PATCH', `${PATH}/00000000-0000-4000-8000-000000000000`, { credentials }),
      await api.ask('PATCH', `${PATH}/${body.id}`, { key: other, body: { credentials } }),
      await api.ask('GET', `${PATH}/${body.id}`, { key: other }),
    ];
    for (const one of responses)
      expect([one.status, one.body.detail]).toEqual([404, 'Bulk export destination not found']);
    expect(s3.seen.length).toBe(before);
  });
});

describe('the secret of a destination', () => {
  it('is nowhere in the database, in events or in the log', async () => {
    await create({ credentials: { ...credentials, session_token: TOKEN } });
    await api.settle();
    const { db } = api.database.owner;
    const rows = [
      await db.selectFrom('export_destinations').selectAll().execute(),
      await db.selectFrom('export_credentials').selectAll().execute(),
      await db.selectFrom('audit_events').selectAll().execute(),
    ];
    const text = JSON.stringify(rows, (_, value) =>
      Buffer.isBuffer(value) ? value.toString('latin1') : typeof value === 'bigint' ? String(value) : value,
    );
    for (const canary of [SECRET, TOKEN]) expect(text + api.logged.join('\n')).not.toContain(canary);
  });

  it('opens for its own row only', async () => {
    const [one, two] = [(await create()).body, (await create()).body];
    const { db } = api.database.owner;
    const from = db.selectFrom('export_credentials').select('sealed').where('destination_id', '=', one.id);
    await db.deleteFrom('export_credentials').where('destination_id', '=', two.id).execute();
    const { sealed } = await from.executeTakeFirstOrThrow();
    const moved = { destination_id: two.id, workspace_id: workspace, version: 1, sealed };
    await db.insertInto('export_credentials').values(moved).execute();
    const place = { workspaceId: workspace, destinationId: two.id as string, version: 1 };
    await expect(openCredentials({ vault: api.vault, db }, place)).rejects.toThrow('changed or moved');
  });
});
