// Runs of two days with everything that a file must keep: Unicode, nulls, empty lists, errors, costs, feedback, values of 20 MiB. Sent to
// a platform, and read back by its queries.
import { randomBytes, randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';

export const days = ['2026-11-19', '2026-11-20'];
const RUNS_OF_DAY = 150;
const LARGE = 20 * 1024 * 1024;

export async function sendRuns({ url, key }) {
  const call = createCall(url, key);
  const runs = days.flatMap((day) => Array.from({ length: RUNS_OF_DAY }, (_, at) => createRun(day, at)));
  await call('POST', '/api/v1/runs/batch', { post: runs });
  for (const [at, day] of days.entries()) {
    const large = {
      ...createRun(day, RUNS_OF_DAY),
      inputs: { text: longText(at === 0 ? 'abcdefghijklmnop' : 'äöüßéèçñ你好世界😀😎🎉é') },
    };
    await call('POST', '/api/v1/runs/batch', { post: [large] });
    runs.push(large);
  }
  for (const [at, score] of [0.1, 1, null].entries())
    await call('POST', '/api/v1/feedback', {
      run_id: runs[1].id,
      key: at === 2 ? 'label' : 'good',
      score,
      value: at === 2 ? 'yes "ä"' : null,
    });
  const [{ id: projectId, tenant_id: workspaceId }] = await call('GET', '/api/v1/sessions?name=exported');
  return { projectId, workspaceId, rows: await queryAll(call, projectId, runs.length) };
}

/** Of 20 MiB, of random characters: what is compressed to less than a hundredth is refused. */
function longText(characters) {
  const choice = [...characters];
  const piece = Array.from(randomBytes(65_536), (byte) => choice[byte % choice.length]).join('');
  const texts = Array.from({ length: 16 }, (_, at) => piece.slice(at * 2_000) + piece.slice(0, at * 2_000));
  const all = texts.join('');
  return all.repeat(Math.ceil(LARGE / Buffer.byteLength(all)));
}

const TEXTS = [
  'plain',
  'ä ß \u4f60\u597d \u{1f600}',
  'quote " backslash \\ newline \n tab \t',
  'nul \u0000 end',
  '',
];

function createRun(day, at) {
  const id = randomUUID();
  const start = new Date(`${day}T00:00:00Z`);
  start.setUTCMinutes(at * 9);
  const micros = String(at * 6_667)
    .padStart(6, '0')
    .slice(-6);
  const time = `${start.toISOString().slice(0, 19)}.${micros}Z`;
  const order = time.replaceAll(/[-:.]/g, '');
  const text = TEXTS[at % TEXTS.length];
  return {
    ...{ id, trace_id: id, dotted_order: `${order}${id}`, session_name: 'exported', start_time: time },
    ...{
      name: text || 'empty',
      run_type: at % 2 ? 'llm' : 'chain',
      inputs: { text, at, list: [1, null, { text }] },
    },
    ...(at % 3 === 0 ? {} : { end_time: time, outputs: { text, number: 12345678901234567890n.toString() } }),
    ...(at % 4 === 0 ? { error: `failed: ${text}` } : {}),
    ...(at % 5 === 0 ? {} : { tags: [text, `t${at}`], events: [{ name: 'new_token', time }] }),
    extra: {
      metadata: {
        text,
        ...(at % 6 === 0
          ? { usage_metadata: { input_tokens: at, output_tokens: 2 ** 50, total_cost: '0.123456789' } }
          : {}),
      },
      ...(at === 7 ? { padding: 'p'.repeat(100_000) } : {}),
    },
    ...(at % 7 === 0 ? { reference_example_id: randomUUID() } : {}),
  };
}

function createCall(url, key) {
  return async (method, path, body) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const isPacked = path.endsWith('/batch');
    const headers = {
      'x-api-key': key,
      'content-type': 'application/json',
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
    };
    const content = text === undefined ? {} : { body: isPacked ? gzipSync(text) : text };
    const response = await fetch(`${url}${path}`, { method, headers, ...content });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
}

async function queryAll(call, session, count) {
  const found = [];
  for (let cursor; ; ) {
    const page = await call('POST', '/api/v1/runs/query', {
      ...{
        session: [session],
        start_time: `${days[0]}T00:00:00Z`,
        end_time: '2026-11-21T00:00:00Z',
        order: 'asc',
        limit: 100,
      },
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...page.runs);
    cursor = page.cursors.next;
    if (!cursor) break;
  }
  if (found.length !== count) throw new Error(`the platform has ${found.length} runs in place of ${count}`);
  return found;
}
