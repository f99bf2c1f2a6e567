import { describe, expect, it } from 'vitest';
import { IDLE_MS, MAX_SESSIONS } from '../../../src/admin/page/page-sessions.ts';
import type { LiveRecord, LiveRecords } from '../../../src/admin/target.ts';
import { createAdminScene, EMPTY_PAGE, field, request, TOKEN } from '../admin-scene.ts';
import { formTokenIn, HOST, ORIGIN, PageVisitor } from './page-visitor.ts';

const PAGES = ['/ui', '/ui/explain', '/ui/rules', '/ui/state'] as const;

type Follower = (record: LiveRecord) => void;

/** Records whose follower the test is given. */
function recordsFor(onFollow: (follower: Follower) => void): LiveRecords {
  return {
    outcomes: [],
    follow(follower) {
      onFollow((record) => follower(record, () => ''));
      return () => undefined;
    },
  };
}

describe('without a session', () => {
  it('each page is the form to sign in, and nothing else', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    for (const path of [...PAGES, '/ui/nothing', '/ui/sign-in']) {
      const page = await visitor.get(path);
      expect(page.head.status, path).toBe(401);
      expect(page.text, path).toContain('<form class="stacked" method="post" action="/ui/sign-in">');
      expect(page.text, path).not.toContain('<nav');
    }
    expect(scene.records).toEqual([]);
  });

  it('a browser that asks for / is led to the page, and a program gets the list of routes', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    const led = await visitor.get('/', { more: ['Accept: text/html,application/xhtml+xml,*/*;q=0.8'] });
    expect([led.head.status, field(led, 'location')]).toEqual([303, '/ui']);
    expect(JSON.parse((await visitor.get('/', { more: ['Accept: */*'] })).text)).toHaveProperty('routes');
  });
});

describe('signing in', () => {
  it('begins a session, whose cookie no script and no other site gets, and leaves a record', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    const response = await visitor.signIn({ next: '/ui/rules' });
    expect([response.head.status, field(response, 'location')]).toEqual([303, '/ui/rules']);
    expect(field(response, 'set-cookie')).toMatch(
      /^sallyport-admin-3129=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    for (const path of PAGES) {
      const page = await visitor.get(path);
      expect([page.head.status, page.text.includes('aria-current="page"')], path).toEqual([200, true]);
    }
    expect(scene.records).toMatchObject([{ action: 'session.begin', outcome: 'done', status: 303 }]);
    const id = visitor.cookie.split('=')[1] ?? '';
    expect(JSON.stringify([scene.records, scene.logLines])).not.toContain(id);
    expect(JSON.stringify([scene.records, scene.logLines])).not.toContain(TOKEN);
  });

  it('behind TLS, which the origin shows, sets a cookie that only TLS can set', async () => {
    await using scene = await createAdminScene({ hosts: ['admin.test'] });
    const visitor = new PageVisitor(scene);
    const response = await visitor.signIn({}, { host: 'admin.test', origin: 'https://admin.test' });
    expect(field(response, 'set-cookie')).toMatch(/^__Host-sallyport-admin-443=.*; Secure$/);
    expect((await visitor.get('/ui', { host: 'admin.test' })).head.status).toBe(200);
    const plain = visitor.cookie.replace('__Host-', '');
    expect((await visitor.get('/ui', { host: 'admin.test', cookie: plain })).head.status).toBe(401);
  });

  it.each(['//evil.test/', 'https://evil.test/', '/v1/proxy_config', '/ui/sign-out', '/\\evil.test'])(
    'leads to no other place: %s',
    async (next) => {
      await using scene = await createAdminScene();
      expect(field(await new PageVisitor(scene).signIn({ next }), 'location')).toBe('/ui');
    },
  );

  it('takes no id that the browser proposes, and ends the session that it had', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    const planted = `sallyport-admin-3129=${'a'.repeat(43)}`;
    await visitor.signIn({}, { cookie: planted });
    expect(visitor.cookie).not.toBe(planted);
    const earlier = visitor.cookie;
    await visitor.signIn();
    expect((await visitor.get('/ui')).head.status).toBe(200);
    for (const cookie of [planted, earlier])
      expect((await visitor.get('/ui', { cookie })).head.status).toBe(401);
  });

  it('with wrong tokens is a 401 five times in a minute, then a 429, and the right one is always accepted', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    const statuses: number[] = [];
    for (let turn = 0; turn < 7; turn += 1) {
      const wrong = await visitor.signIn({ token: `guess-${turn}` });
      statuses.push(wrong.head.status);
      expect(wrong.text).toContain('role="alert"');
      expect(wrong.text).not.toContain('guess-');
      expect(field(wrong, 'set-cookie')).toBeUndefined();
      expect((await visitor.signIn({}, { cookie: '' })).head.status).toBe(303);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    // The API and the page have one limit.
    const fields = ['Host: localhost', 'X-Api-Key: guess'];
    expect((await scene.ask('GET', '/v1/sandboxes', { fields })).head.status).toBe(429);
    expect(scene.records.filter(({ reason }) => reason === 'wrong_token')).toHaveLength(8);
  });

  it('ends what another form began when there are 16 sessions', async () => {
    await using scene = await createAdminScene();
    const visitors = Array.from({ length: MAX_SESSIONS + 1 }, () => new PageVisitor(scene));
    for (const visitor of visitors) await visitor.signIn();
    const statuses = await Promise.all(visitors.map(async (one) => (await one.get('/ui')).head.status));
    expect(statuses).toEqual([401, ...Array.from({ length: MAX_SESSIONS }, () => 200)]);
  });
});

describe('a session', () => {
  it('ends with the form to sign out, and leaves a record', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    const token = formTokenIn(await visitor.get('/ui'));
    const response = await visitor.post('/ui/sign-out', { form_token: token });
    expect([response.head.status, field(response, 'location')]).toEqual([303, '/ui']);
    expect(field(response, 'set-cookie')).toMatch(/^sallyport-admin-3129=; Path=\/; Max-Age=0;/);
    expect((await visitor.get('/ui')).head.status).toBe(401);
    expect(scene.records.map(({ action }) => action)).toEqual(['session.begin', 'session.end']);
  });

  it('ends when it is not used', async () => {
    let now = 0;
    const clock = { monotonic: () => now, wall: () => now };
    await using scene = await createAdminScene({ clock });
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    now += IDLE_MS - 1;
    expect((await visitor.get('/ui')).head.status).toBe(200);
    now += IDLE_MS;
    expect((await visitor.get('/ui')).head.status).toBe(401);
  });

  it('shows no page that does not exist, and takes no other method', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    const form_token = formTokenIn(await visitor.get('/ui'));
    expect((await visitor.get('/ui/nothing')).head.status).toBe(404);
    const posted = await visitor.post('/ui/rules', { form_token });
    expect([posted.head.status, field(posted, 'allow')]).toEqual([405, 'GET, HEAD']);
    const fields = [`Host: ${HOST}`, `Cookie: ${visitor.cookie}`];
    expect((await scene.ask('DELETE', '/ui', { fields })).head.status).toBe(405);
    expect((await scene.ask('HEAD', '/ui', { fields })).head.status).toBe(200);
  });
});

describe('an attack', () => {
  it.each([
    ['another host', { host: 'evil.test' }, 421],
    ['the name of a rebound host with our port', { host: 'evil.test:3129' }, 421],
    ['a name that begins like ours', { host: 'localhost.evil.test' }, 421],
    ['a proxy', { more: ['Via: 1.1 proxy'] }, 403],
    ['a proxy that terminated TLS', { more: ['X-Forwarded-Proto: https'] }, 403],
  ])('by way of %s gets no page, not even the form', async (_, sent, status) => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    for (const path of PAGES) {
      const response = await visitor.get(path, sent);
      expect([response.head.status, response.text.includes('<')], path).toEqual([status, false]);
    }
    expect((await visitor.signIn({}, sent)).head.status).toBe(status);
  });

  it('with the cookie gets nothing of the API', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    for (const path of ['/v1/proxy_config', '/v1/sandboxes', '/v1/workspace_secrets'])
      expect((await visitor.get(path)).head.status, path).toBe(401);
    const fields = [`Host: ${HOST}`, `Cookie: ${visitor.cookie}`, `Origin: ${ORIGIN}`];
    const written = await scene.ask('PUT', '/v1/proxy_config', { fields, body: { rules: [] } });
    expect([written.head.status, scene.calls]).toEqual([401, []]);
  });

  it('with the token of the API gets no page', async () => {
    await using scene = await createAdminScene();
    expect((await scene.ask('GET', '/ui')).head.status).toBe(401);
  });

  it.each([
    ['from another site', { origin: 'https://evil.test', more: ['Sec-Fetch-Site: cross-site'] }],
    [
      'from another port of this host',
      { origin: 'http://localhost:8080', more: ['Sec-Fetch-Site: same-site'] },
    ],
    ['from a page without an origin', { origin: 'null' }],
    ['from nobody', { origin: undefined }],
  ])('by a form %s does nothing', async (_, sent) => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    expect((await visitor.signIn({}, sent)).head.status).toBe(403);
    expect(await scene.record(0)).toMatchObject({ action: 'session.begin', reason: 'foreign_form' });
    await visitor.signIn();
    const form_token = formTokenIn(await visitor.get('/ui'));
    for (const path of ['/ui/sign-out', '/ui/explain']) {
      const { status } = (await visitor.post(path, { form_token, url: 'https://a.test/' }, sent)).head;
      expect([401, 403], path).toContain(status);
    }
    expect((await visitor.get('/ui')).head.status).toBe(200);
  });

  it.each(['', 'a'.repeat(43), 'of the form to sign in'])(
    'by a form with a wrong token (%s) does nothing',
    async (token) => {
      await using scene = await createAdminScene();
      const visitor = new PageVisitor(scene);
      const signInToken = formTokenIn(await visitor.get('/ui'));
      const form_token = token.startsWith('of') ? signInToken : token;
      await visitor.signIn();
      for (const path of ['/ui/sign-out', '/ui/explain'])
        expect((await visitor.post(path, { form_token })).head.status, path).toBe(403);
      if (form_token !== signInToken) expect((await visitor.signIn({ form_token })).head.status).toBe(403);
      expect((await visitor.get('/ui')).head.status).toBe(200);
    },
  );

  it('by a page of another port, whose requests have the cookie, sees no page', async () => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    for (const site of ['same-site', 'cross-site']) {
      const page = await visitor.get('/ui', { more: [`Sec-Fetch-Site: ${site}`] });
      expect([page.head.status, page.text.includes('<nav')]).toEqual([401, false]);
    }
  });

  it('by HTML in what others have chosen is shown as text', async () => {
    const evil = '<img src=x onerror=alert(1)>"\u202e\'';
    const entry = { name: evil, hosts: [evil], paths: [evil], gives: [evil], requests: [evil] };
    const page = {
      ...EMPTY_PAGE,
      sandboxes: () => ['default', evil],
      rules: () => ({ revision: 1, rules: [entry], callbacks: [entry] }),
      explain: () => ({ isRefused: false, rows: [['headers', evil]] as const }),
      state: () => [{ title: 'Sandboxes', rows: [[evil, evil]] as const, problem: evil }],
    };
    let follower: Follower = () => undefined;
    const records = recordsFor((one) => (follower = one));
    await using scene = await createAdminScene({ target: { loadPage: async () => page, records } });
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    const form_token = formTokenIn(await visitor.get('/ui/explain'));
    const explained = await visitor.post('/ui/explain', {
      form_token,
      url: evil,
      sandbox: evil,
      method: evil,
    });
    follower({ sandbox: evil, method: evil, authority: evil, path: evil, rule: evil, outcome: evil });
    const pages = [explained, await visitor.get('/ui/rules'), await visitor.get('/ui/state')];
    pages.push(await visitor.get(`/ui?filter=${encodeURIComponent('<img')}`));
    for (const { head, text } of pages) {
      expect(head.status).toBe(200);
      expect(text).toContain('&#60;img src=x onerror=alert(1)&#62;');
      expect(text).not.toContain('<img');
      expect(text.match(/<script>/g)).toHaveLength(1);
    }
  });
});

describe('a form', () => {
  it.each([
    ['JSON', 'application/json', '{}', 415],
    ['text, as a form of another site can send it', 'text/plain', 'a=b', 415],
    ['in parts', 'multipart/form-data; boundary=x', '--x--', 415],
    ['with 17 KiB', 'application/x-www-form-urlencoded', `url=${'a'.repeat(17 * 1024)}`, 413],
  ])('that is %s is rejected', async (_, type, body, status) => {
    await using scene = await createAdminScene();
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    const fields = [
      `Host: ${HOST}`,
      `Origin: ${ORIGIN}`,
      `Cookie: ${visitor.cookie}`,
      `Content-Type: ${type}`,
    ];
    expect((await scene.ask('POST', '/ui/explain', { fields, body })).head.status).toBe(status);
  });

  it('about no URL, or no sandbox, says what is wrong', async () => {
    const page = {
      ...EMPTY_PAGE,
      explain: (id: string) => (id === 'default' ? 'give an absolute URL' : undefined),
    };
    await using scene = await createAdminScene({ target: { loadPage: async () => page } });
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    const form_token = formTokenIn(await visitor.get('/ui/explain'));
    const wrong = await visitor.post('/ui/explain', { form_token, url: 'nonsense' });
    expect([wrong.head.status, wrong.text.includes('Give an absolute URL')]).toEqual([422, true]);
    const nobody = await visitor.post('/ui/explain', { form_token, url: 'https://a.test/', sandbox: 'b' });
    expect([nobody.head.status, nobody.text.includes('no such sandbox')]).toEqual([422, true]);
  });
});

describe('the stream of rows', () => {
  const record = {
    sandbox: 'default',
    method: 'GET',
    authority: 'a.test:443',
    path: '/x',
    outcome: 'injected',
  };

  it('begins with the last records, goes on with those that come, and ends with the session', async () => {
    const followers = new Set<Follower>();
    const records = recordsFor((one) => followers.add(one));
    await using scene = await createAdminScene({ target: { records } });
    const visitor = new PageVisitor(scene);
    await visitor.signIn();
    for (const tell of followers) tell(record);
    await using client = await scene.connect();
    const fields = [`Host: ${HOST}`, `Cookie: ${visitor.cookie}`];
    await client.send(request('GET', '/ui/stream?filter=INJECTED', { fields }));
    const head = await client.readHead();
    expect([head.status, head.text.includes('application/x-ndjson')]).toEqual([200, true]);
    await client.readThrough('"a.test:443","/x"');
    for (const tell of followers) tell({ ...record, path: '/refused', outcome: 'refused' });
    for (const tell of followers) tell({ ...record, path: '/next' });
    await client.readThrough('/next');
    expect(client.transcript).not.toContain('/refused');
    const form_token = formTokenIn(await visitor.get('/ui'));
    await visitor.post('/ui/sign-out', { form_token });
    await client.readThrough('"ended":"session"');
  });

  it('is for a session alone, and for as many readers as the API has', async () => {
    await using scene = await createAdminScene({ limits: { readers: 1 } });
    const visitor = new PageVisitor(scene);
    expect((await visitor.get('/ui/stream')).head.status).toBe(401);
    await visitor.signIn();
    const other = await visitor.get('/ui/stream', { more: ['Sec-Fetch-Site: same-site'] });
    expect(other.head.status).toBe(401);
    await using client = await scene.connect();
    await client.send(
      request('GET', '/ui/stream', { fields: [`Host: ${HOST}`, `Cookie: ${visitor.cookie}`] }),
    );
    expect((await client.readHead()).status).toBe(200);
    expect((await visitor.get('/ui/stream')).head.status).toBe(429);
  });
});

it('a page has a policy that allows its own style and script alone, and no other page may frame or read it', async () => {
  await using scene = await createAdminScene();
  const visitor = new PageVisitor(scene);
  await visitor.signIn();
  for (const page of [await visitor.get('/ui', { cookie: '' }), await visitor.get('/ui')]) {
    expect(field(page, 'content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; .*form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    );
    expect(field(page, 'cross-origin-resource-policy')).toBe('same-origin');
    expect(field(page, 'cache-control')).toBe('no-store');
    expect(page.text).not.toMatch(/ style=| on[a-z]+=|https?:\/\/(?!api\.example)/);
  }
});

it('an error of a page is logged, and shown without its text', async () => {
  const page = {
    ...EMPTY_PAGE,
    state() {
      throw new Error('secret words');
    },
  };
  await using scene = await createAdminScene({ target: { loadPage: async () => page } });
  const visitor = new PageVisitor(scene);
  await visitor.signIn();
  const shown = await visitor.get('/ui/state');
  expect([shown.head.status, shown.text.includes('secret words')]).toEqual([500, false]);
  expect(scene.logLines.join()).toContain('page failed');
});
