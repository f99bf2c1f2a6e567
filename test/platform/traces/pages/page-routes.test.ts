import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { saveAttachments } from '../../../../src/platform/traces/artifacts/attachments.ts';
import { toMicroseconds } from '../../../../src/platform/traces/runs/run-time.ts';
import type { RunValues } from '../../../../src/platform/traces/runs/run-part.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { partOf, mergeRuns } from '../store/trace-scene.ts';

let api: PlatformApi;
let organizationId: string;
let workspaceId: string;
let key: string;
let otherKey: string;
let projectId: string;
beforeAll(async () => {
  api = await createPlatformApi();
  organizationId = await api.addOrganization();
  workspaceId = await api.addWorkspace(organizationId);
  key = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
  const other = await api.addWorkspace(organizationId);
  otherKey = await api.addServiceKey(organizationId, 'WORKSPACE_USER', other);
  projectId = await addProject('<i>support</i>');
});
afterAll(() => api[Symbol.asyncDispose]());

const get = (path: string, as: Ask = { key }): Promise<Asked> => api.ask('GET', path, as);

async function addProject(name: string): Promise<string> {
  const row = { workspace_id: workspaceId, id: randomUUID(), name };
  await api.database.owner.db.insertInto('trace_projects').values(row).execute();
  return row.id;
}

type Given = {
  readonly parent?: string;
  readonly trace?: string;
  readonly ago?: number;
  readonly values?: RunValues;
};

async function addRun(
  { parent, trace, ago = 60_000, values = {} }: Given,
  project = projectId,
): Promise<string> {
  const id = randomUUID();
  const start_time = toMicroseconds(Date.now() - ago) ?? '';
  const part = partOf({
    ...{ id, project: { rank: 2, id: project }, values },
    start: {
      start_time,
      trace_id: trace ?? id,
      parent_run_id: parent ?? null,
      parent_run_ids: parent ? [parent] : [],
    },
  });
  await mergeRuns(api.database.store, workspaceId, [part]);
  return id;
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const SCRIPT = '<script>alert(1)</script>';
const BIDI = 'a\u202eb\u2066';
const LINK = 'javascript:alert(1)';

/** What a browser would make of it: elements and attributes, without texts. */
const tagsOf = (page: string): readonly string[] => page.match(/<[^>]*>/g) ?? [];

describe('a page', () => {
  it('allows its own style and its own script, and nothing else', async () => {
    const { status, headers, text } = await get('/traces');
    const policy = headers.get('content-security-policy') ?? '';
    const hashOf = (part: string): string => {
      const [, content = ''] = new RegExp(`<${part}>(.*?)</${part}>`, 's').exec(text) ?? [];
      return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
    };
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `style-src ${hashOf('style')}`,
      `script-src ${hashOf('script')}`,
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ]);
    expect(headers.get('x-frame-options')).toBe('DENY');
  });

  it('needs a key or a session, and leads to the sign-in', async () => {
    const { status, text, headers } = await get('/traces', {});
    expect([status, headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8']);
    expect(text).toContain('href="/login?next=%2Ftraces" data-sign-in=""');
    const signedIn = await api.ask('POST', '/login', {
      raw: `key=${key}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect((await get('/traces', { headers: { cookie } })).status).toBe(200);
  });

  it('is of the workspace that the address names, where the key has none', async () => {
    const all = await api.addServiceKey(organizationId, 'ORGANIZATION_ADMIN');
    expect((await get('/traces', { key: all })).status).toBe(403);
    const { status, text } = await get(`/traces?workspace=${workspaceId}`, { key: all });
    expect([status, text]).toEqual([
      200,
      expect.stringContaining(`/traces/${projectId}?workspace=${workspaceId}`),
    ]);
    expect((await get(`/traces?workspace=${workspaceId}`, { key: otherKey })).status).toBe(403);
    expect((await get('/traces?workspace=x', { key: all })).status).toBe(422);
  });

  it('of another workspace is not found', async () => {
    const id = await addRun({ values: { inputs_json: json(1) } });
    for (const path of [`/traces/${projectId}`, `/traces/${projectId}/${id}`, `/traces/runs/${id}/inputs`]) {
      expect([path, (await get(path)).status]).toEqual([path, 200]);
      expect([path, (await get(path, { key: otherKey })).status]).toEqual([path, 404]);
    }
    const { text } = await get(`/traces/${projectId}/${id}`, { key: otherKey });
    expect(text).toContain('<div role="alert"><p>');
  });
});

it('the page of a trace names the project of its run, whatever project its address has', async () => {
  const elsewhere = await addProject('elsewhere');
  const id = await addRun({});
  const { status, text } = await get(`/traces/${elsewhere}/${id}`);
  expect(status).toBe(200);
  expect(text).toContain(`<a href="/traces/${projectId}">`);
  expect(text).not.toContain(elsewhere);
  expect((await get(`/traces/${projectId}/${randomUUID()}`)).status).toBe(404);
});

describe('the page of projects', () => {
  it('has those whose names contain a text, in pages', async () => {
    const { text } = await get('/traces?name=%3Ci%3Es');
    expect(text).toContain(`href="/traces/${projectId}"><bdi>&#60;i&#62;support&#60;/i&#62;</bdi></a>`);
    expect(text).toContain('value="&#60;i&#62;s"');
    expect((await get('/traces?name=nothing')).text).toContain('No project has this in its name.');
  });
});

describe('the page of runs', () => {
  it('has the traces of the project, newest first and in pages', async () => {
    const project = await addProject('paged');
    const ids: string[] = [];
    for (let at = 0; at < 52; at += 1) ids.push(await addRun({ ago: (at + 1) * 1_000 }, project));
    const child = await addRun({ parent: ids[0] ?? '', trace: ids[0] ?? '' }, project);
    const listed = (text: string): readonly string[] =>
      [...text.matchAll(/\?run=([0-9a-f-]{36})/g)].map(([, id = '']) => id);
    const first = (await get(`/traces/${project}`)).text;
    expect(listed(first)).toEqual(ids.slice(0, 50));
    const next = /<a rel="next" href="([^"]*)">/.exec(first)?.[1]?.replaceAll('&#38;', '&') ?? '';
    const second = (await get(next)).text;
    expect(listed(second)).toEqual(ids.slice(50));
    expect(second).toContain(`<a rel="prev" href="/traces/${project}?`);
    const cursor = new URLSearchParams(next.split('?')[1]).get('after') ?? '';
    const content = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    const forged = JSON.stringify({ ...content, start_time: '0000-01-01T00:00:00Z' });
    const after = Buffer.from(forged).toString('base64url');
    expect(listed((await get(next.replace(cursor, after))).text)).toEqual(ids.slice(0, 50));
    expect(listed((await get(`/traces/${project}?shows=runs&filter=eq(is_root, false)`)).text)).toEqual([
      child,
    ]);
    expect(listed((await get(`/traces/${project}?since=1h`)).text)).toHaveLength(50);
  });

  it('says where a filter is wrong, with what the reader has written', async () => {
    const filter = `and(eq(nme, "${SCRIPT}"), gt(latency, "5 parsecs"))`;
    const { status, text } = await get(`/traces/${projectId}?filter=${encodeURIComponent(filter)}`);
    expect(status).toBe(200);
    expect(text).toContain('aria-invalid="true" aria-describedby="problem"');
    expect(text).toContain('<p>Character 8: Unknown field');
    expect(text).toContain('<mark><bdi>nme</bdi></mark>');
    expect(text).toContain('<mark><bdi>&#34;5 parsecs&#34;</bdi></mark>');
    expect(tagsOf(text).filter((tag) => tag.startsWith('<script'))).toEqual(['<script>']);
    const unfinished = await get(`/traces/${projectId}?filter=eq(name,`);
    expect(unfinished.text).toContain('<mark> end </mark>');
  });
});

describe('the page of a trace', () => {
  it('is no larger for values of many brackets', async () => {
    const brackets = Buffer.from(`${'['.repeat(30_000)}${']'.repeat(30_000)}`);
    const values = { error: 'x', error_json: brackets, inputs_json: brackets, outputs_json: brackets };
    const { text } = await get(`/traces/${projectId}/${await addRun({ values })}`);
    expect(text.length).toBeLessThan(1_200_000);
  });

  it('shows the tree, and the run that is chosen with its values, feedback and attachments', async () => {
    const root = await addRun({
      ...{ ago: 10_000 },
      values: {
        ...{ name: 'reply', end_time: toMicroseconds(Date.now() - 5_000) ?? '' },
        ...{ inputs_json: json({ q: 1 }), outputs_json: json({ a: 2 }), extra_json: json({}) },
        usage_in_outputs: { input_tokens: 10, output_tokens: 5, total_tokens: 15, total_cost: '0.250000000' },
      },
    });
    const child = await addRun({
      ...{ parent: root, trace: root, ago: 9_000 },
      values: { name: 'look up', error: 'broken', error_json: json('broken\nin line 2') },
    });
    await api.ask('POST', '/feedback', {
      key: await api.addServiceKey(organizationId, 'WORKSPACE_USER', workspaceId),
      body: { run_id: root, key: 'correct', score: 0.5, value: 'half', comment: 'not bad' },
    });
    const attachment = {
      run_id: root,
      name: 'scan.png',
      mime_type: 'image/png',
      size: 2048,
      object: randomUUID(),
    };
    await api.database.store.write((trx) => saveAttachments(trx, workspaceId, [attachment]));
    const { text } = await get(`/traces/${projectId}/${root}`);
    expect(text).toContain('2 runs · 1 with an error · 15 tokens');
    expect(text).toMatch(
      /<span class="what d0"><span class=""><bdi>reply<\/bdi><\/span> <small>chain · 15 tokens<\/small>/,
    );
    expect(text).toMatch(/<span class="what d1"><span class="error"><bdi>look up<\/bdi>/);
    expect(text).toContain(`run=${root}#run" aria-current="true">`);
    expect(text).toContain('15 (10 in, 5 out)');
    expect(text).toContain('$0.25');
    expect(text).toContain('{\n  &#34;q&#34;: 1\n}');
    expect(text).toContain(
      '<bdi>correct</bdi>: <b>0.5</b> <bdi>half</bdi> <span class="faint"><bdi>not bad</bdi></span>',
    );
    expect(text).toMatch(
      /<a href="\/api\/v1\/attachments\?object=[^"]*" download=""><bdi>scan.png<\/bdi><\/a> <small>image\/png, 2.0 KiB/,
    );
    const chosen = (await get(`/traces/${projectId}/${root}?run=${child}`)).text;
    expect(chosen).toContain('<bdi>broken\nin line 2</bdi>');
    expect((await get(`/traces/${projectId}/${child}?run=${root}`)).status).toBe(404);
    expect((await get(`/traces/${projectId}/${randomUUID()}`)).status).toBe(404);
  });

  it('whose root has not come shows what is there', async () => {
    const [trace, parent] = [randomUUID(), randomUUID()];
    const child = await addRun({ parent, trace, values: { name: 'early' } });
    const { status, text } = await get(`/traces/${projectId}/${trace}`);
    expect([status, text]).toEqual([200, expect.stringContaining('The parent of this run was not received')]);
    expect(text).toContain(`run=${child}#run" aria-current="true"`);
  });

  it('shows every value as text: markup, links, directions of writing', async () => {
    const hostile = `${SCRIPT}${BIDI}"'>${LINK}</pre></bdi></body>`;
    const values = {
      ...{
        name: hostile,
        tags: [hostile, LINK],
        thread_id: hostile,
        error: hostile,
        error_json: json(hostile),
      },
      ...{ inputs_json: json({ [hostile]: hostile }), inputs_text: hostile, outputs_json: json(hostile) },
      ...{ extra_json: json({ metadata: { [hostile]: [hostile] } }), events_json: json([hostile]) },
    };
    const project = await addProject(hostile);
    const id = await addRun({ values }, project);
    await api.database.owner.db
      .insertInto('trace_feedback')
      .values({
        workspace_id: workspaceId,
        run_id: id,
        key: hostile,
        value: JSON.stringify(hostile),
        comment: hostile,
      })
      .execute();
    const attachment = { run_id: id, name: hostile, mime_type: hostile, size: 1, object: hostile };
    await api.database.store.write((trx) => saveAttachments(trx, workspaceId, [attachment]));
    for (const path of ['/traces', `/traces/${project}`, `/traces/${project}/${id}`]) {
      const { text } = await get(path);
      const tags = tagsOf(text);
      expect(
        tags.filter((tag) => /^<\/?(?:script|style|pre|body|html|img|iframe)\b/.test(tag)).join(''),
      ).toMatch(
        /^<html lang="en"><style><\/style><body>(?:<pre tabindex="0"><\/pre>)*<script><\/script><\/body><\/html>$/,
      );
      expect(tags.filter((tag) => /\son\w+=|javascript:|style=/i.test(tag))).toEqual([]);
      for (const tag of tags) expect(tag).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
      expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
      expect(text).toContain('&#60;script&#62;alert(1)&#60;/script&#62;a<b class="mark">U+202E</b>');
    }
  });

  const cuts = async (mebibytes: number): Promise<void> => {
    const large = 'x'.repeat(mebibytes * 1024 * 1024);
    const long = 'x'.repeat(64_000);
    const values = {
      ...{ name: long, tags: [long], error: 'x', error_json: json(large), inputs_json: json({ large }) },
      inputs_text: large.slice(0, 1_000),
    };
    const project = await addProject(`large ${mebibytes}`);
    const id = await addRun({ values }, project);
    const runs = await get(`/traces/${project}`);
    const trace = await get(`/traces/${project}/${id}`);
    for (const { text } of [runs, trace]) {
      expect(text).toContain('<span class="cut">… 62.5 KiB</span>');
      expect(text.length).toBeLessThan(256 * 1024);
    }
    expect(trace.text).toContain(`Cut after 64.0 KiB. The whole takes ${mebibytes}.0 MiB where it is stored`);
    const { headers, text } = await get(`/traces/runs/${id}/inputs`);
    expect(text === JSON.stringify({ large })).toBe(true);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'content-disposition': `attachment; filename*=UTF-8''${id}-inputs.json`,
      'content-security-policy': "sandbox; default-src 'none'",
    });
    expect((await get(`/traces/runs/${id}/outputs`)).status).toBe(404);
  };

  it('cuts large values and the longest names and tags, says their size, and has the whole as a download', () =>
    cuts(3));

  it('does so with values of 20 MiB', { tags: ['long'] }, () => cuts(20));
});
