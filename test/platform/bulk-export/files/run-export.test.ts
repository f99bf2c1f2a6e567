// One run of an export: what its files have, and what is left when an attempt ends in the middle.
import { randomUUID } from 'node:crypto';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { exportFields } from '../../../../src/platform/bulk-export/files/export-columns.ts';
import { abandonUpload } from '../../../../src/platform/bulk-export/files/run-export.ts';
import { createRunPages } from '../../../../src/platform/traces/queries/run-pages.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { openS3Server, type S3Response, s3Error, type S3Server } from '../../../support/s3-server.ts';
import { createScene, type ExportScene, readMetadata, readRows } from './export-scene.ts';

let database: TestDatabase;
let s3: S3Server;
let scene: ExportScene;
let override: (method: string, query: URLSearchParams) => S3Response | undefined;
beforeAll(async () => {
  database = await createTestDatabase();
  s3 = await openS3Server({
    override: ({ method, url }) => override(method ?? '', new URL(url ?? '', 'http://s3').searchParams),
  });
});
afterAll(async () => {
  await s3[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  override = () => undefined;
  scene = await createScene(database, s3);
});

const contentOf = (key: string): Buffer => s3.objects.get(`/traces/${key}`) ?? Buffer.alloc(0);
const filesOf = () => scene.checkpoints.progress.files;
const rowsOf = async () => (await Promise.all(filesOf().map(({ key }) => readRows(contentOf(key))))).flat();
const inParts = { compression: 'none' } as const;
const many = (count: number) =>
  Array.from({ length: count }, (_, second) => ({ second, values: { name: `n${second}` } }));

describe('the files of a run', () => {
  it('have each column of each run, as it was received', async () => {
    const text = 'ä \u{1f600} \\u0000 "quoted"';
    const json = Buffer.from(JSON.stringify({ text }));
    const long = Buffer.from(JSON.stringify({ text: 'long '.repeat(10_000) }));
    const [full, bare] = await scene.add([
      {
        second: 1,
        start: { parent_run_id: randomUUID(), parent_run_ids: [randomUUID(), randomUUID()] },
        values: {
          ...{ name: text, run_type: 'llm', end_time: '2026-11-20T00:00:02.500001Z', tags: ['x', text, ''] },
          ...{ inputs_json: json, outputs_json: zstdCompressSync(long), extra_json: Buffer.from('{}') },
          ...{
            events_json: Buffer.from('[]'),
            error: 'it broke',
            error_json: Buffer.from('"it \\"broke\\" \\ud83d\\ude00"'),
          },
          ...{ first_token_time: '2026-11-20T00:00:01.250000Z', reference_example_id: randomUUID() },
          usage_in_extra: {
            input_tokens: 1,
            output_tokens: 2,
            total_tokens: 3,
            total_cost: '1234.500000000',
          },
        },
      },
      { second: 2 },
    ]);
    if (full === undefined || bare === undefined) throw new Error('no runs');
    const feedback = {
      workspace_id: scene.task.workspaceId,
      run_id: full.id,
      session_id: scene.task.projectId,
    };
    await database.owner.db
      .insertInto('trace_feedback')
      .values([
        { ...feedback, key: 'good', score: 1 },
        { ...feedback, key: 'good', score: 0, value: '"yes"' },
      ])
      .execute();
    await scene.run();
    const [file] = filesOf();
    const { workspaceId, projectId, exportId, runId } = scene.task;
    expect(file).toEqual({
      key: `exports/export_id=${exportId}/tenant_id=${workspaceId}/session_id=${projectId}/runs/year=2026/month=11/day=20/${runId}-0.parquet`,
      ...{ rows: 2, bytes: contentOf(file?.key ?? '').length },
    });
    const [first, second] = await rowsOf();
    expect(Object.keys(first ?? {})).toEqual(exportFields);
    const times = { start_time: new Date('2026-11-20T00:00:01.000Z') };
    expect(first).toMatchObject({
      ...{ id: full.id, tenant_id: workspaceId, session_id: projectId, trace_id: full.start.trace_id },
      ...{
        parent_run_id: full.start.parent_run_id,
        parent_run_ids: full.start.parent_run_ids,
        is_root: false,
      },
      ...{
        name: text,
        run_type: 'llm',
        status: 'error',
        dotted_order: full.start.dotted_order,
        tags: ['x', text, ''],
      },
      ...{
        inputs: json.toString(),
        outputs: long.toString(),
        extra: '{}',
        events: '[]',
        error: 'it "broke" \u{1f600}',
      },
      ...{ total_tokens: 3n, prompt_tokens: 1n, completion_tokens: 2n, total_cost: 1234.5 },
      ...{ reference_example_id: full.values.reference_example_id, trace_tier: 'longlived', ...times },
    });
    expect(JSON.parse(String(first?.['feedback_stats']))).toEqual({
      good: { n: 2, avg: 0.5, values: { yes: 1 } },
    });
    const never = [
      'id',
      'tenant_id',
      'session_id',
      'trace_id',
      'name',
      'run_type',
      'start_time',
      'is_root',
      'dotted_order',
    ];
    const given = [...never, 'status', 'trace_tier', 'parent_run_ids', 'tags'];
    expect(second).toMatchObject({ id: bare.id, parent_run_ids: [], tags: [], status: 'pending' });
    for (const field of exportFields)
      if (!given.includes(field)) expect(second?.[field] ?? null, field).toBeNull();
  });

  it.each(['none', 'gzip', 'snappy', 'zstd'] as const)(
    'are compressed by %s, with times of both kinds',
    async (compression) => {
      await scene.add(many(30));
      for (const formatVersion of ['v1', 'v2_beta'] as const) {
        scene.checkpoints.progress = { rows: 0, files: [] };
        await scene.run({ compression, formatVersion, runId: randomUUID() });
        const { schema, row_groups: groups } = readMetadata(contentOf(filesOf()[0]?.key ?? ''));
        const time = schema.find(({ name }) => name === 'start_time');
        expect(time?.logical_type).toEqual({
          type: 'TIMESTAMP',
          isAdjustedToUTC: formatVersion === 'v2_beta',
          unit: 'MICROS',
        });
        const codecs = new Set(
          groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data?.codec)),
        );
        expect([...codecs]).toEqual([
          { none: 'UNCOMPRESSED', gzip: 'GZIP', snappy: 'SNAPPY', zstd: 'ZSTD' }[compression],
        ]);
        expect((await rowsOf()).map(({ name }) => name)).toEqual(
          many(30).map(({ values: { name } }) => name),
        );
      }
    },
  );

  it('have the chosen columns and the runs of the filter, the window and the project alone', async () => {
    await scene.add([...many(5), { second: 86_399, values: { name: 'n3' } }]);
    await scene.add([{ second: 1, project: { rank: 2, id: randomUUID() }, values: { name: 'n3' } }]);
    await scene.add([
      { second: 0, start: { start_time: '2026-11-21T00:00:00.000000Z' }, values: { name: 'n3' } },
    ]);
    await scene.run({ fields: ['name', 'is_root'], filter: 'in(name, ["n3", "n4"])' });
    expect(await rowsOf()).toEqual(['n3', 'n4', 'n3'].map((name) => ({ name, is_root: true })));
  });

  it('are none for a window without runs, and the storage is not asked', async () => {
    const before = s3.seen.length;
    await scene.run();
    expect([scene.checkpoints.progress, s3.seen.length]).toEqual([{ rows: 0, files: [] }, before]);
  });

  it('with large values have their buffers collected as they are written', async () => {
    const { NODE_PERFORMANCE_GC_FLAGS_FORCED: forced } = constants;
    const collections: number[] = [];
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        collections.push((entry as unknown as { readonly detail: { readonly flags: number } }).detail.flags);
    });
    observer.observe({ entryTypes: ['gc'] });
    const value = Buffer.from(JSON.stringify('a'.repeat(9 * 1024 * 1024)));
    await scene.add([{ second: 1, values: { inputs_json: value } }]);
    await scene.run();
    await expect.poll(() => collections.some((flags) => (flags & forced) !== 0)).toBe(true);
    observer.disconnect();
  });

  it('begin anew after a number of rows, page by page and group by group', async () => {
    await scene.add(many(23));
    const progress: number[] = [];
    const limits = { pageRows: 4, groupRows: 3, fileRows: 9 };
    await scene.run({}, { limits, onProgress: ({ rows }) => progress.push(rows) });
    expect(filesOf().map(({ rows }) => rows)).toEqual([9, 9, 5]);
    expect(new Set(filesOf().map(({ key }) => key)).size).toBe(3);
    expect([progress.at(0), progress.at(-1), scene.checkpoints.progress.rows]).toEqual([3, 23, 23]);
    expect((await rowsOf()).map(({ name }) => name)).toEqual(many(23).map(({ values: { name } }) => name));
  });

  it('have one page and one group for each run that is larger than those', async () => {
    const inputs_json = Buffer.from(JSON.stringify('x'.repeat(3 * 1024 * 1024)));
    await scene.add([0, 1].map((second) => ({ second, values: { inputs_json } })));
    await scene.run({ compression: 'none' }, { limits: { groupBytes: 1024 * 1024 } });
    expect((await rowsOf()).map(({ inputs }) => inputs)).toEqual([
      inputs_json.toString(),
      inputs_json.toString(),
    ]);
    expect(readMetadata(contentOf(filesOf()[0]?.key ?? '')).row_groups).toHaveLength(2);
    expect(s3.uploads.keys).toEqual([]);
  });
});

describe('a run whose payloads have more bytes together than are held of one', () => {
  const value = (field: string) => [`${field}_json`, Buffer.from(JSON.stringify(field.repeat(200_000)))];
  const five = Object.fromEntries(['inputs', 'outputs', 'extra', 'events', 'error'].map(value));

  it('ends the export for reasons of resources, and names the column', async () => {
    const [, run] = await scene.add([{ second: 1 }, { second: 2, values: { ...five, error: 'error' } }]);
    const failure = await scene.run(inParts, { limits: { runBytes: 3_000_000 } }).catch((error) => error);
    expect(failure).toMatchObject({ kind: 'resources', isRetryable: true });
    expect(failure.message).toMatch(new RegExp(`trace run ${run?.id} have more than 2 MiB with \\w+:`));
    expect([filesOf(), s3.uploads.keys]).toEqual([[], []]);
  });

  it('is exported without the columns that have them', async () => {
    await scene.add([{ second: 1, values: { ...five, error: 'error' } }]);
    await scene.run({ fields: ['id', 'inputs'] }, { limits: { runBytes: 3_000_000 } });
    expect(await rowsOf()).toHaveLength(1);
  });
});

describe('an export whose place others need', () => {
  it('ends with the rows that it writes, and the next attempt goes on behind them', async () => {
    await scene.add(many(7));
    const limits = { pageRows: 4, groupRows: 3 };
    const ends = [];
    for (let attempt = 0; attempt < 4; attempt += 1)
      ends.push(await scene.run({}, { limits, isPreempted: () => true }));
    expect(ends).toEqual(['preempted', 'preempted', 'preempted', 'completed']);
    expect(filesOf().map(({ rows }) => rows)).toEqual([3, 3, 1]);
    expect((await rowsOf()).map(({ name }) => name)).toEqual(many(7).map(({ values: { name } }) => name));
  });
});

/** So large that it is sent in parts. */
const large = (second: number) => ({
  second,
  values: { inputs_json: Buffer.from(JSON.stringify(String(second).repeat(3 * 1024 * 1024))) },
});

describe('an attempt that is killed', () => {
  const killed = new Error('killed');
  const fail = (error: unknown) => () => {
    throw error;
  };

  it('between upload and checkpoint: the next attempt takes the file as it is', async () => {
    await scene.add(many(3));
    scene.checkpoints.onCommit = fail(killed);
    await expect(scene.run()).rejects.toBe(killed);
    const puts = () => s3.seen.filter(({ method }) => method === 'PUT').length;
    const [before, { pendingUpload: pending }] = [puts(), scene.checkpoints.progress];
    scene.checkpoints.onCommit = () => undefined;
    await scene.run();
    expect([puts(), filesOf()]).toEqual([
      before,
      [{ key: pending?.key, rows: 3, bytes: pending?.target?.bytes }],
    ]);
    expect(scene.checkpoints.progress.pendingUpload).toBeUndefined();
  });

  it('the same where the storage shows no sizes: the file is written again, under its key', async () => {
    override = (method) => (method === 'HEAD' ? s3Error(403, 'AccessDenied') : undefined);
    await scene.add(many(3));
    scene.checkpoints.onCommit = fail(killed);
    await expect(scene.run()).rejects.toBe(killed);
    const [key] = scene.checkpoints.uploads.map((one) => one.key);
    scene.checkpoints.onCommit = () => undefined;
    await scene.run();
    expect(filesOf().map((file) => [file.key, file.rows])).toEqual([[key, 3]]);
    expect(await rowsOf()).toHaveLength(3);
  });

  it('and whose rows are gone: the file that it has left is removed', async () => {
    override = (method) => (method === 'HEAD' ? s3Error(403, 'AccessDenied') : undefined);
    await scene.add(many(3));
    scene.checkpoints.onCommit = fail(killed);
    await expect(scene.run()).rejects.toBe(killed);
    const key = scene.checkpoints.uploads[0]?.key ?? '';
    scene.checkpoints.onCommit = () => undefined;
    await scene.run({ filter: 'eq(name, "none")' });
    expect([contentOf(key).length, scene.checkpoints.progress]).toEqual([0, { rows: 0, files: [] }]);
  });

  it('in the middle of an upload: the next attempt aborts it, also without its id', async () => {
    await scene.add([large(1), large(2)]);
    override = (method, query) => {
      if (query.get('partNumber') === '1') throwAway();
      return query.has('uploadId') && method === 'DELETE' ? s3Error(403, 'AccessDenied') : undefined;
    };
    const throwAway = () =>
      void (override = (_, query) => (query.has('uploadId') ? s3Error(403, 'AccessDenied') : undefined));
    await expect(scene.run(inParts)).rejects.toMatchObject({ kind: 'permissions' });
    expect(s3.uploads.keys).toHaveLength(1);
    const { key, token } = scene.checkpoints.progress.pendingUpload ?? { key: '', token: '' };
    scene.checkpoints.progress = { rows: 0, files: [], pendingUpload: { key, token } };
    override = () => undefined;
    await scene.run(inParts);
    expect([s3.uploads.keys, filesOf().map(({ rows }) => rows)]).toEqual([[], [2]]);
  });

  it('and is tried by nobody again: its upload can be aborted by itself', async () => {
    await scene.add([large(1), large(2)]);
    override = (_, query) => (query.has('uploadId') ? s3Error(403, 'AccessDenied') : undefined);
    await expect(scene.run(inParts)).rejects.toMatchObject({ kind: 'permissions' });
    const { pendingUpload } = scene.checkpoints.progress;
    if (pendingUpload === undefined) throw new Error('nothing is pending');
    // Not while the storage is away.
    override = () => s3Error(500, 'InternalError');
    await expect(abandonUpload(scene.task.destination, pendingUpload)).rejects.toMatchObject({
      kind: 'unavailable',
    });
    override = () => undefined;
    await abandonUpload(scene.task.destination, pendingUpload);
    expect(s3.uploads.keys).toEqual([]);
  });
});

describe('an attempt that has to end', () => {
  it('by its signal: it ends although the storage is silent, and its upload is aborted', async () => {
    await scene.add([large(1), large(2)]);
    const [aborting, isSilent] = [new AbortController(), Promise.withResolvers<void>()];
    const silent = s3.server.listeners('request')[0] as (...given: unknown[]) => void;
    s3.server.removeAllListeners('request').on('request', (request, response) => {
      if (request.url?.includes('partNumber')) return isSilent.resolve();
      silent(request, response);
    });
    try {
      const running = scene.run(inParts, { signal: aborting.signal });
      await isSilent.promise;
      const reason = new Error('cancelled');
      aborting.abort(reason);
      await expect(running).rejects.toBe(reason);
      expect(s3.uploads.keys).toEqual([]);
    } finally {
      s3.server.removeAllListeners('request').on('request', silent);
    }
  });

  it('by its signal: it ends although aborts of what a killed one has left get no response', async () => {
    await scene.add([large(1)]);
    const [aborting, isSilent] = [new AbortController(), Promise.withResolvers<void>()];
    const pending = { key: 'left.parquet', token: 't', uploadId: 'left' };
    scene.checkpoints.progress = { rows: 0, files: [], pendingUpload: pending };
    const listed = Array.from(
      { length: 20 },
      (_, n) => `<Upload><Key>left.parquet</Key><UploadId>${n}</UploadId></Upload>`,
    );
    const body = `<ListMultipartUploadsResult>${listed.join('')}</ListMultipartUploadsResult>`;
    override = (method) => (method === 'GET' ? { status: 200, type: 'application/xml', body } : undefined);
    const served = s3.server.listeners('request')[0] as (...given: unknown[]) => void;
    s3.server.removeAllListeners('request').on('request', (request, response) => {
      if (request.method === 'DELETE') return isSilent.resolve();
      served(request, response);
    });
    try {
      const running = scene.run(inParts, { signal: aborting.signal });
      await isSilent.promise;
      const reason = new Error('cancelled');
      aborting.abort(reason);
      await expect(running).rejects.toBe(reason);
    } finally {
      s3.server.removeAllListeners('request').on('request', served);
      s3.server.closeAllConnections();
    }
  });

  it('by a lost lease: what the checkpoint has thrown is thrown, and the upload is aborted', async () => {
    await scene.add([large(1), large(2)]);
    const lost = new Error('the lease is lost');
    const { beginUpload } = scene.checkpoints;
    scene.checkpoints.beginUpload = (upload) =>
      upload.target === undefined ? beginUpload(upload) : Promise.reject(lost);
    await expect(scene.run(inParts)).rejects.toBe(lost);
    expect([s3.uploads.keys, s3.objects.has(`/traces/${scene.checkpoints.uploads[0]?.key}`)]).toEqual([
      [],
      false,
    ]);
  });

  it('by a lost lease: no file is removed, which may be that of another attempt', async () => {
    override = (method) => (method === 'HEAD' ? s3Error(403, 'AccessDenied') : undefined);
    await scene.add(many(3));
    await scene.run();
    const [key = ''] = filesOf().map((file) => file.key);
    scene.checkpoints.progress = { rows: 0, files: [], pendingUpload: { key, token: 't' } };
    const [lost, { beginUpload }] = [new Error('the lease is lost'), scene.checkpoints];
    let isHeld = true;
    scene.checkpoints.beginUpload = (upload) => (isHeld ? beginUpload(upload) : Promise.reject(lost));
    const traces = createRunPages(postgresTraceStore);
    const readPage: typeof traces.readPage = async (...given) => {
      const page = await traces.readPage(...given);
      isHeld = false;
      return page;
    };
    const running = scene.run({ filter: 'eq(name, "none")' }, { traces: { ...traces, readPage } });
    await expect(running).rejects.toBe(lost);
    expect(s3.objects.has(`/traces/${key}`)).toBe(true);
  });

  it('by silence of the storage, which another attempt may change', async () => {
    await scene.add(many(1));
    const silent = s3.server.listeners('request')[0] as (...given: unknown[]) => void;
    s3.server.removeAllListeners('request').on('request', () => undefined);
    try {
      const running = scene.run({}, { limits: { silenceMs: 50 } });
      await expect(running).rejects.toMatchObject({ kind: 'unavailable', isRetryable: true });
    } finally {
      s3.server.closeAllConnections();
      s3.server.removeAllListeners('request').on('request', silent);
    }
  });
});

describe('a storage that takes no file', () => {
  it.each([
    [403, 'AccessDenied', 'permissions', /^Access denied/],
    [403, 'SignatureDoesNotMatch', 'credentials', /^Access denied/],
    [403, 'InvalidAccessKeyId', 'credentials', /^Key ID you provided does not exist/],
    [404, 'NoSuchBucket', 'bucket', /^Bucket is not valid/],
    [400, 'InvalidBucketName', 'bucket', /^InvalidBucketName/],
    [403, 'Html', 'destination', /^Invalid endpoint/],
  ])('with %s %s: %s', async (status, code, kind, message) => {
    await scene.add(many(1));
    override = () => (code === 'Html' ? { status, body: '<html>internal</html>' } : s3Error(status, code));
    const failure = await scene.run().catch((error: unknown) => error);
    expect(failure).toMatchObject({ kind, message: expect.stringMatching(message) });
    expect(String(failure)).not.toContain('internal');
  });

  it.each(['a&#0;b', 'x'.repeat(100_000)])(
    'and names an upload as nobody could store it',
    async (uploadId) => {
      await scene.add([large(1), large(2)]);
      const body = `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`;
      override = (method, query) =>
        method === 'POST' && query.has('uploads')
          ? { status: 200, type: 'application/xml', body }
          : undefined;
      await expect(scene.run(inParts)).rejects.toMatchObject({ kind: 'unavailable' });
      expect(scene.checkpoints.uploads.map(({ uploadId: id }) => id)).toEqual([undefined]);
    },
  );

  it('with rights to put alone is no failure', async () => {
    const denied = (method: string, query: URLSearchParams) =>
      method !== 'PUT' && !(method === 'POST' && query.size > 0);
    override = (method, query) => (denied(method, query) ? s3Error(403, 'AccessDenied') : undefined);
    await scene.add([large(1), large(2)]);
    await scene.run(inParts);
    expect(filesOf().map(({ rows }) => rows)).toEqual([2]);
  });

  it('and keeps another size than was written: the run fails, and may be tried again', async () => {
    await scene.add(many(1));
    override = (method) => (method === 'HEAD' ? { status: 200, body: '' } : undefined);
    await expect(scene.run()).rejects.toMatchObject({ kind: 'unavailable' });
  });
});
