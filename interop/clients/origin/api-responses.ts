// What api.test responds: what any HTTP client can be tried with, and the parts of model, payment and chat APIs that their
// public clients call.
import { gzipSync } from 'node:zlib';
import {
  type OriginRequest,
  type OriginResponse,
  readBody,
  send,
  sendEvents,
  sendJson,
} from './origin-response.ts';
import { respondAsModel } from './model-responses.ts';

export async function respondAsApi(request: OriginRequest, response: OriginResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'https://api.test');
  const body = await readBody(request);
  switch (pathname) {
    case '/echo':
      return sendJson(response, 200, {
        method: request.method,
        bytes: body.length,
        version: request.httpVersion,
      });
    case '/stream':
      return sendEvents(
        response,
        [0, 1, 2, 3, 4].map((number) => ({ data: { number } })),
      );
    case '/redirect':
      return send(response, 302, '', { location: '/echo' });
    case '/gzip':
      return send(response, 200, gzipSync('{"compressed":true}'), {
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      });
    case '/hold':
      await new Promise<void>((resolve) => (release = resolve));
      return send(response, 200, '');
    case '/release':
      release();
      return send(response, 200, '');
    case '/page':
      return send(response, 200, PAGE, { 'content-type': 'text/html' });
    case '/v1/customers':
      return sendJson(response, 200, { object: 'list', data: [], has_more: false, url: pathname });
    case '/api/auth.test':
      return sendJson(response, 200, { ok: true, user: 'agent', team: 'team' });
    case '/storage/v1/b':
      return sendJson(response, 200, { kind: 'storage#buckets', items: [] });
    default: {
      const isModel = await respondAsModel(pathname, body, response);
      if (!isModel) sendJson(response, 404, { error: { message: 'there is nothing at this path' } });
    }
  }
}

/** Of a page. */
let release = (): void => undefined;

/** What a browser does: a request, a stream and a WebSocket. The page has loaded when its image has, after all of these. */
const PAGE = `<!doctype html><title>waiting</title><link rel="icon" href="data:,"><body><p id="result"></p><img src="/hold"><script>
(async () => {
  const { bytes } = await (await fetch('/echo', { method: 'POST', body: 'abc' })).json();
  const reader = (await fetch('/stream')).body.getReader();
  const times = [];
  for (;;) {
    if ((await reader.read()).done) break;
    times.push(performance.now());
  }
  const socket = new WebSocket('wss://ws.test/');
  const echoed = await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('hello');
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = () => reject(new Error('WebSocket'));
  });
  const isRight = bytes === 3 && echoed === 'hello';
  document.getElementById('result').textContent = isRight ? '\\nspread ' + Math.round(times.at(-1) - times[0]) + '\\n' : 'wrong';
  document.title = 'done';
  await fetch('/release');
})();
</script>`;
