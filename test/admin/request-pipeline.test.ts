import { describe, expect, it } from 'vitest';
import { createAdminScene, field, OWN, request } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
const MIB = 1024 * 1024;

describe('a document', () => {
  it.each([
    ['application/json', 200],
    ['Application/JSON; charset=UTF-8', 200],
    ['application/json;charset="utf-8"; profile=x', 200],
    ['application/json; charset=utf-16', 415],
    ['application/json; charset=utf-8; charset=latin1', 415],
    ['application/jsonp', 415],
    ['application/json, text/plain', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['', 415],
  ])('sent as Content-Type: %s gets the status %i', async (type, status) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', PATH, { body: {}, more: [`Content-Type: ${type}`] });
    expect(response.head.status).toBe(status);
    if (status === 415) expect(JSON.parse(response.text).detail).toContain('Content-Type: application/json');
  });

  it('needs a Content-Type, and one only', async () => {
    await using scene = await createAdminScene();
    const statuses: number[] = [];
    for (const types of [[], ['Content-Type: application/json', 'Content-Type: application/json']]) {
      await using client = await scene.connect();
      const head = ['PUT /v1/proxy_config HTTP/1.1', ...OWN, ...types, 'Content-Length: 2', '', '{}'];
      await client.send(head.join('\r\n'));
      statuses.push((await client.readResponse()).head.status);
    }
    expect(statuses).toEqual([415, 415]);
  });

  it.each(['gzip', 'identity'])('encoded as %s is a 415', async (coding) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', PATH, { body: {}, more: [`Content-Encoding: ${coding}`] });
    expect([response.head.status, scene.records[0]?.reason]).toEqual([415, 'content_encoding']);
  });

  it.each([
    ['nothing', ''],
    ['blanks', ' \n'],
    ['no JSON', '{"rules": [canary-value]}'],
    ['two documents', '{}{}'],
    ['a name twice', '{"rules": [], "rules": []}'],
    ['a byte order mark', '\ufeff{}'],
    ['too many levels', '['.repeat(100) + ']'.repeat(100)],
  ])('of %s is a 422 json_invalid', async (_, body) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', PATH, { body });
    expect(response.head.status).toBe(422);
    const { detail } = JSON.parse(response.text);
    expect(detail).toEqual([{ loc: ['body'], msg: expect.any(String), type: 'json_invalid' }]);
    expect(response.text).not.toContain('canary');
    expect(scene.calls).toEqual([]);
  });

  it('without a body is a 422', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', PATH, { more: ['Content-Type: application/json'] });
    expect([response.head.status, response.text.includes('json_invalid')]).toEqual([422, true]);
  });

  it.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong form', [0xc0, 0xaf]],
    ['half a character', [0xe2, 0x82]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
  ])('of UTF-8 with %s is a 422', async (_, bytes) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const content = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
    const more = ['Content-Type: application/json', `Content-Length: ${content.length}`];
    await client.send(Buffer.concat([request('PUT', PATH, { more }), content]));
    const response = await client.readResponse();
    expect([response.head.status, response.text.includes('not valid UTF-8')]).toEqual([422, true]);
  });

  it('in chunks is read like any other', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    await client.send(request('PUT', PATH, { more }));
    await client.send('6\r\n{"rule\r\n');
    await client.send('6\r\ns":[]}\r\n0\r\n\r\n');
    expect((await client.readResponse()).head.status).toBe(200);
    expect(scene.calls[0]?.given[0]).toEqual({ rules: [] });
    // And the connection goes on.
    await client.send(request('GET', PATH));
    expect((await client.readResponse()).head.status).toBe(200);
  });

  it('of a mebibyte is accepted, and one of a byte more is a 413', async () => {
    await using scene = await createAdminScene();
    const whole = `"${'x'.repeat(MIB - 2)}"`;
    expect((await scene.ask('PUT', PATH, { body: whole })).head.status).toBe(200);
    const response = await scene.ask('PUT', PATH, { body: `${whole} ` });
    expect([response.head.status, field(response, 'connection')]).toEqual([413, 'close']);
    expect(scene.calls).toHaveLength(1);
  });

  it('that announces too much is rejected before a byte of it was sent', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Content-Type: application/json', `Content-Length: ${50 * MIB}`];
    await client.send(request('PUT', PATH, { more }));
    expect((await client.readResponse()).head.status).toBe(413);
    expect(['end', 'ECONNRESET']).toContain(await client.finished);
  });

  it('that is too large may still be sent to its end, so that no reset overtakes the response', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Content-Type: application/json', `Content-Length: ${2 * MIB}`];
    await client.send(request('PUT', PATH, { more }));
    expect((await client.readResponse()).head.status).toBe(413);
    for (let sent = 0; sent < 2 * MIB; sent += MIB / 16) await client.send('x'.repeat(MIB / 16));
    expect(await client.finished).toBe('end');
    expect(scene.calls).toEqual([]);
  });

  it('in chunks without end is rejected at the limit, and its connection ends', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    await client.send(request('PUT', PATH, { more }));
    await client.send(`${(MIB + 1).toString(16)}\r\n${'x'.repeat(MIB + 1)}\r\n`);
    expect((await client.readResponse()).head.status).toBe(413);
    // What a client goes on sending is discarded for a while, not read for ever.
    const sent = (async () => {
      for (;;) await client.send(`10000\r\n${'x'.repeat(65536)}\r\n`);
    })().catch((error: NodeJS.ErrnoException) => error.code);
    expect(['end', 'ECONNRESET', 'EPIPE']).toContain(await client.finished);
    client.reset();
    expect(typeof (await sent)).toBe('string');
  });

  it('is asked for with a 100 only when it will be read', async () => {
    await using scene = await createAdminScene();
    const more = ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'];
    await using client = await scene.connect();
    await client.send(request('PUT', PATH, { more }));
    expect((await client.readHead()).status).toBe(100);
    await client.send('{}');
    expect((await client.readResponse()).head.status).toBe(200);
    await using other = await scene.connect();
    await other.send(request('PUT', PATH, { fields: ['Host: localhost'], more }));
    expect((await other.readHead()).status).toBe(401);
    const odd = await scene.ask('PUT', PATH, { body: {}, more: ['Expect: 200-ok'] });
    expect([odd.head.status, field(odd, 'cache-control')]).toEqual([417, 'no-store']);
  });

  it('is not asked for with a 100 over HTTP/1.0, which has no interim responses', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const more = ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'];
    await client.send(String(request('PUT', PATH, { more })).replace('HTTP/1.1', 'HTTP/1.0'));
    await client.send('{}');
    expect((await client.readResponse()).head.status).toBe(200);
  });

  it.each([
    ['Transfer-Encoding: gzip, chunked', '1.1'],
    ['Transfer-Encoding: chunked, chunked', '1.1'],
    ['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '1.1'],
    ['Transfer-Encoding: chunked, identity', '1.1'],
    ['Transfer-Encoding:', '1.1'],
    ['Transfer-Encoding: chunked', '1.0'],
  ])('framed by %s over HTTP/%s is a 400 and ends the connection', async (field, version) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const head = String(request('PUT', PATH, { more: ['Content-Type: application/json', field] }));
    await client.send(head.replace('HTTP/1.1', `HTTP/${version}`));
    await client.send('2\r\n{}\r\n0\r\n\r\n').catch(() => undefined);
    expect((await client.readHead()).status).toBe(400);
    expect(['end', 'ECONNRESET']).toContain(await client.finished);
    expect(scene.calls).toEqual([]);
  });

  it.each(['identity', 'chunked;a=b'])(
    'framed by Transfer-Encoding: %s, which has no end, ends the connection and is recorded',
    async (coding) => {
      await using scene = await createAdminScene();
      await using client = await scene.connect();
      const more = ['Content-Type: application/json', `Transfer-Encoding: ${coding}`];
      await client.send(request('PUT', PATH, { more }));
      expect(['end', 'ECONNRESET']).toContain(await client.finished);
      expect(await scene.record(0)).toMatchObject({ status: 400, reason: 'framing' });
      expect(scene.calls).toEqual([]);
    },
  );

  it('framed in two ways, or wrongly, is a 400 and reaches no handler', async () => {
    await using scene = await createAdminScene();
    const type = 'Content-Type: application/json';
    for (const [more, body] of [
      [[type, 'Content-Length: 2', 'Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'],
      [[type, 'Content-Length: 2', 'Content-Length: 3'], '{} '],
      [[type, 'Transfer-Encoding: chunked'], 'nonsense\r\n'],
    ] as const) {
      await using client = await scene.connect();
      await client.send(request('PUT', PATH, { more }));
      await client.send(body).catch(() => undefined);
      expect((await client.readHead()).status).toBe(400);
    }
    expect(scene.calls).toEqual([]);
  });

  it('on a route without one is not read', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('DELETE', '/v1/sandboxes/default', { body: { a: 1 } });
    expect([response.head.status, field(response, 'connection')]).toEqual([204, 'close']);
  });
});
