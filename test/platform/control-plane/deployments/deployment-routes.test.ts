// `/v2/deployments`, as control-plane clients use it.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const one = (id: string): string => `${DEPLOYMENTS}/${id}`;
const patch = (id: string, body: unknown) => scene.ask('PATCH', one(id), body);

const smallest = (): Record<string, unknown> => ({
  ...{ name: `app-${randomUUID()}`, source: 'internal_source', source_config: { deployment_type: 'dev' } },
  source_revision_config: {},
});

describe('a deployment', () => {
  it('is created without a source, and its first revision waits for one', async () => {
    const secrets = [{ name: 'TOKEN', value: 'canary-value' }];
    const given = { ...smallest(), name: `app-${randomUUID()}`, secrets, future: 1 };
    const { status, body, text } = await scene.ask('POST', DEPLOYMENTS, given);
    expect([status, text.includes('canary')]).toEqual([201, false]);
    const nulls = { integration_id: null, repo_url: null, build_on_push: null, custom_url: null };
    const noConfig = { resource_spec: null, listener_id: null, listener_config: null };
    expect(body).toEqual({
      ...{ id: expect.any(String), tenant_id: scene.workspaceId, name: given.name, display_name: null },
      source: 'internal_source',
      source_config: {
        ...{ ...nulls, ...noConfig, deployment_type: 'dev', install_command: null, build_command: null },
      },
      source_revision_config: {
        ...{ repo_ref: null, repo_commit_sha: null, langgraph_config_path: null, image_uri: null },
        source_tarball_path: null,
      },
      ...{ secrets: [{ name: 'TOKEN', value: '' }], secret_references: [] },
      ...{ status: 'AWAITING_DATABASE', status_reason: null, image_version: null, proxy_profile_id: null },
      ...{ latest_revision_id: expect.any(String), active_revision_id: null },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    });
    const revision = await scene.ask('GET', `${one(body.id)}/revisions/${body.latest_revision_id}`);
    expect(revision.body).toMatchObject({ status: 'CREATING', source: 'internal_source' });
    expect((await scene.ask('GET', one(body.id))).body).toEqual(body);
    expect((await scene.ask('GET', `/api-host${one(body.id)}`)).body).toEqual(body);
    const { operation, record } = await scene.lastEvent();
    expect([operation, record.enrichments.resource_ids]).toEqual(['create_deployment', [body.id]]);
  });

  it('is listed by its name, its status, its type and its id', async () => {
    const text = randomUUID().slice(0, 8);
    const make = (name: string, type: string) =>
      scene.create({ name, source_config: { deployment_type: type } });
    const exact = await make(text, 'prod');
    const longer = await make(`Agent-${text.toUpperCase()}-2`, 'dev');
    const list = async (query: string): Promise<readonly string[]> => {
      const { body } = await scene.ask('GET', `${DEPLOYMENTS}?name_contains=${text}&${query}`);
      return body.resources.map(({ id }: { readonly id: string }) => id);
    };
    // One of exactly the name comes first, although it is older.
    expect(await list('')).toEqual([exact.id, longer.id]);
    expect(await list('limit=1&offset=1')).toEqual([longer.id]);
    expect(await list('status=AWAITING_DATABASE&deployment_type=dev')).toEqual([longer.id]);
    expect(await list(`deployment_ids=${exact.id}&deployment_ids=${randomUUID()}`)).toEqual([exact.id]);
    for (const none of ['status=READY', 'status=UNUSED', 'status=UNKNOWN', 'image_version=1'])
      expect(await list(none)).toEqual([]);
    expect((await scene.ask('GET', `${DEPLOYMENTS}?name_contains=%25`)).body.resources).toEqual([]);
  });

  it.each(['dev_free', 'dev', 'dev_zero', 'prod'])(
    'may have the type %s, as public clients send it',
    async (type) => {
      const given = { ...smallest(), source_config: { deployment_type: type } };
      const { status, body } = await scene.ask('POST', DEPLOYMENTS, given);
      expect([status, body.source_config?.deployment_type]).toEqual([201, type]);
    },
  );

  it('is changed without a revision, unless the change needs one', async () => {
    const { id, latest_revision_id: first } = await scene.create({ secrets: [{ name: 'A', value: 'a' }] });
    const plain = await patch(id, {
      ...{ display_name: 'Shown', secrets: [], tag_value_ids: ['x'] },
      source_config: { build_command: 'npm run build && true', resource_spec: null },
    });
    expect(plain.body).toMatchObject({ display_name: 'Shown', latest_revision_id: first });
    expect(plain.body.source_config.build_command).toBe('npm run build && true');
    expect(plain.body.secrets).toEqual([{ name: 'A', value: '' }]);
    let latest = first;
    for (const change of [
      { source_revision_config: {} },
      { source_config: { resource_spec: { cpu: 0.5 } } },
      {
        secrets: [
          { name: 'A', value: '' },
          { name: 'B', value: 'b' },
        ],
      },
    ]) {
      const { body } = await patch(id, change);
      expect(body.latest_revision_id).not.toBe(latest);
      latest = body.latest_revision_id;
    }
    const { body } = await scene.ask('GET', one(id));
    expect(body.secrets.map(({ name }: { readonly name: string }) => name)).toEqual(['A', 'B']);
    expect(body.source_config.resource_spec).toEqual({ cpu: 0.5 });
    const revisions = await scene.ask('GET', `${one(id)}/revisions`);
    expect(revisions.body.resources.map((each: { readonly status: string }) => each.status)).toEqual([
      ...['CREATING', 'SKIPPED', 'SKIPPED', 'SKIPPED'],
    ]);
    const { operation, record } = await scene.lastEvent();
    expect([operation, record.enrichments.resource_ids]).toEqual(['update_deployment', [id, latest]]);
  });

  it('takes a resource_spec as a whole, and every public field of it', async () => {
    const spec = {
      ...{ min_scale: 1, max_scale: 2, cpu: 0.1, cpu_limit: 16, memory_mb: 512, memory_limit_mb: 1024 },
      ...{ queue_cpu: 8, redis_memory_mb: 1, db_min_scale: 0, labels: { 'example.com/a': 'b' } },
      ...{ annotations: { c: 'd' }, service_account_name: 'e', image_pull_secrets: [{ name: 'f' }] },
      volumes: [{ name: 'g', emptyDir: {} }],
      sidecars: [{ name: 'h', securityContext: { privileged: false } }],
    };
    const { id, source_config } = await scene.create({
      source_config: { resource_spec: { ...spec, orchestrator_cpu: 99 } },
    });
    expect(source_config.resource_spec).toEqual(spec);
    const { body } = await patch(id, { source_config: { resource_spec: { cpu: 1 } } });
    expect(body.source_config.resource_spec).toEqual({ cpu: 1 });
  });

  it('shows where clients reach it once a runner has it', async () => {
    const { id } = await scene.create();
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    await scene.build(id);
    const { body } = await scene.ask('GET', one(id));
    expect(body.source_config.custom_url).toBe(`http://127.0.0.1:8090/d/${id}`);
  });

  it('is deleted, and its name is free', async () => {
    const { id, name } = await scene.create();
    expect((await scene.ask('DELETE', one(id))).status).toBe(204);
    const { operation, record } = await scene.lastEvent();
    expect([operation, record.enrichments.resource_ids]).toEqual(['delete_deployment', [id]]);
    const gone = await scene.ask('GET', one(id));
    expect([gone.status, gone.body.detail]).toEqual([404, `Deployment ID ${id} not found.`]);
    await scene.create({ name });
  });

  it('that a runner has stays until nothing of it runs, and takes no changes', async () => {
    const { id, name } = await scene.create();
    await patch(id, { source_revision_config: { source_tarball_path: await scene.upload(id) } });
    await scene.build(id);
    expect((await scene.ask('DELETE', one(id))).status).toBe(204);
    expect((await scene.ask('DELETE', one(id))).status).toBe(204);
    expect((await scene.ask('GET', one(id))).body.status).toBe('AWAITING_DELETE');
    const { body } = await scene.ask('GET', `${one(id)}/revisions?limit=1`);
    expect(body.resources[0].status).toBe('INTERRUPTED');
    // Clients look for a name before they make a deployment of it.
    const list = async (query: string) =>
      (await scene.ask('GET', `${DEPLOYMENTS}?${query}`)).body.resources.map(
        (each: { id: string }) => each.id,
      );
    expect(await list(`name_contains=${name}`)).toEqual([]);
    expect(await list(`name_contains=${name}&status=AWAITING_DELETE`)).toEqual([id]);
    expect(await list(`deployment_ids=${id}`)).toEqual([id]);
    const change = await patch(id, { display_name: 'x' });
    expect([change.status, change.body.detail]).toEqual([400, `Deployment ID ${id} is being deleted.`]);
    await scene.create({ name });
  });

  it('is deleted with others, as far as they are of the workspace', async () => {
    const ids = [(await scene.create()).id, (await scene.create()).id];
    const foreign = (await scene.create({}, { key: scene.otherKey })).id;
    const remove = (list: readonly string[]) =>
      scene.ask('DELETE', `${DEPLOYMENTS}?${list.map((id) => `deployment_ids=${id}`).join('&')}`);
    const some = await remove([ids[0], foreign, ids[0]]);
    expect([some.status, some.body]).toEqual([
      207,
      {
        deleted: [ids[0]],
        failed: [{ deployment_id: foreign, detail: `Deployment ID ${foreign} not found.` }],
      },
    ]);
    const rest = await remove([ids[1]]);
    expect([rest.status, rest.body]).toEqual([200, { deleted: [ids[1]], failed: [] }]);
    expect((await scene.ask('DELETE', DEPLOYMENTS)).status).toBe(422);
    expect((await remove(Array.from({ length: 101 }, () => randomUUID()))).status).toBe(422);
    expect((await scene.ask('GET', one(foreign), undefined, { key: scene.otherKey })).status).toBe(200);
  });

  it('goes with its workspace, whatever state it is in', async () => {
    const organization = await scene.api.addOrganization();
    await scene.api.addWorkspace(organization);
    const workspace = await scene.api.addWorkspace(organization);
    const key = await scene.api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
    const admin = await scene.api.addMemberKey(organization, 'ORGANIZATION_ADMIN');
    const { id } = await scene.create({ secrets: [{ name: 'A', value: 'a' }] }, { key });
    const gone = await scene.ask('DELETE', `/api/v1/workspaces/${workspace}`, undefined, { key: admin });
    expect([gone.status, gone.text]).toEqual([200, expect.any(String)]);
    const left = scene.api.database.owner.db.selectFrom('deployments').select('id').where('id', '=', id);
    expect(await left.execute()).toEqual([]);
  });
});

describe('a deployment of images', () => {
  const addListener = async (as = { key: scene.key }): Promise<string> => {
    const body = {
      ...{ compute_type: 'k8s', compute_id: `cluster-${randomUUID()}` },
      compute_config: { k8s_namespaces: ['agents'] },
    };
    return (await scene.ask('POST', '/v2/listeners', body, as)).body.id;
  };
  const ofImage = (config: object) => ({
    ...smallest(),
    ...{ source: 'external_docker', source_config: config },
    source_revision_config: { image_uri: 'registry.example.com/app:1' },
    secret_references: [{ name: 'A', secret_name: 'b', secret_key: 'c' }],
  });

  it('waits for the agent of its listener, which stays as long', async () => {
    const listener_id = await addListener();
    const listener_config = { k8s_namespace: 'agents' };
    const given = ofImage({ listener_id, listener_config, custom_url: 'https://app.example.com' });
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, given);
    expect([status, body.status]).toEqual([201, 'READY']);
    expect(body.source_config).toMatchObject({
      listener_id,
      listener_config,
      custom_url: 'https://app.example.com',
    });
    expect(body.secret_references).toEqual(given.secret_references);
    const at = `/v1/projects/${body.id}/revisions/${body.latest_revision_id}`;
    const revision = await scene.ask('GET', `${one(body.id)}/revisions/${body.latest_revision_id}`);
    expect(revision.body.status).toBe('AWAITING_DEPLOY');
    const { compute_id } = (await scene.ask('GET', `/v2/listeners/${listener_id}`)).body;
    const logs = await scene.ask('POST', `${at}/deploy_logs`, {});
    expect(logs.body.logs).toMatchObject([
      { level: 'INFO', message: `waiting for listener ${compute_id}: no agent is connected` },
    ]);
    const kept = await scene.ask('DELETE', `/v2/listeners/${listener_id}`);
    expect([kept.status, kept.body.detail]).toEqual([
      409,
      'Deployments use this listener: delete them first',
    ]);
    await scene.ask('DELETE', one(body.id));
    expect((await scene.ask('DELETE', `/v2/listeners/${listener_id}`)).status).toBe(204);
  });

  it('is rejected with a listener of another workspace, or one that does not serve the namespace', async () => {
    const [own, foreign] = [await addListener(), await addListener({ key: scene.otherKey })];
    for (const listener_id of [foreign, randomUUID(), 'x']) {
      const { status, body } = await scene.ask('POST', DEPLOYMENTS, ofImage({ listener_id }));
      expect([status, body.detail]).toEqual([
        400,
        expect.stringMatching(/^source_config\.listener_id: there is no such listener in this workspace/),
      ]);
    }
    const config = { listener_id: own, listener_config: { k8s_namespace: 'default' } };
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, ofImage(config));
    expect([status, body.detail]).toEqual([
      400,
      expect.stringMatching(/^source_config\.listener_config\.k8s_namespace: the listener does not serve it/),
    ]);
  });

  it('needs an image and a listener', async () => {
    const given = { ...ofImage({}), source_revision_config: {} };
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, given);
    expect([status, body.detail.map(({ loc }: { readonly loc: unknown }) => loc)]).toEqual([
      422,
      [
        ['body', 'source_revision_config', 'image_uri'],
        ['body', 'source_config', 'listener_id'],
      ],
    ]);
  });

  it('may be pushed to the registry, with a token', async () => {
    const { id } = await scene.create({
      source: 'internal_docker',
      source_revision_config: { image_uri: 'a/b' },
    });
    const token = await scene.ask('POST', `${one(id)}/push-token`);
    expect([token.status, token.body]).toEqual([
      200,
      { token: 'token-of-a-test-registry', registry_url: 'registry.example.test/images' },
    ]);
    expect((await scene.lastEvent()).operation).toBe('update_deployment');
    const other = await scene.create();
    const refused = await scene.ask('POST', `${one(other.id)}/push-token`);
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      expect.stringContaining("only available for 'internal_docker' source deployments"),
    ]);
  });
});

describe('a deployment is rejected', () => {
  it.each(['github', 'internal_template'])('from %s, which is not available', async (source) => {
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, { ...smallest(), source });
    expect([status, body.detail]).toEqual([
      400,
      `The source ${source} is not available here: deploy from internal_source`,
    ]);
  });

  it('with a name that is taken', async () => {
    const { name } = await scene.create();
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, { ...smallest(), name });
    expect([status, body.detail]).toEqual([
      400,
      'A deployment with this name already exists in the workspace',
    ]);
    await scene.create({ name }, { key: scene.otherKey });
  });

  it('with a proxy profile of another workspace', async () => {
    const profile = { name: 'shared', proxy_config: {} };
    const own = (await scene.ask('POST', '/v1/proxy-profiles', profile)).body.id;
    const foreign = (await scene.ask('POST', '/v1/proxy-profiles', profile, { key: scene.otherKey })).body.id;
    const { id, proxy_profile_id } = await scene.create({ proxy_profile_id: own });
    expect(proxy_profile_id).toBe(own);
    for (const wrong of [foreign, randomUUID()]) {
      const made = await scene.ask('POST', DEPLOYMENTS, { ...smallest(), proxy_profile_id: wrong });
      const changed = await patch(id, { proxy_profile_id: wrong });
      for (const { status, body } of [made, changed])
        expect([status, body.detail]).toEqual([404, 'Proxy profile not found']);
    }
    expect((await scene.ask('DELETE', `/v1/proxy-profiles/${own}`)).status).toBe(409);
    expect((await patch(id, { proxy_profile_id: null })).body.proxy_profile_id).toBeNull();
    expect((await scene.ask('DELETE', `/v1/proxy-profiles/${own}`)).status).toBe(204);
  });

  const at = (...loc: readonly (string | number)[]) => [['body', ...loc]];
  const wrong: readonly (readonly [what: string, given: object, loc: readonly unknown[]])[] = [
    [
      'a reserved secret',
      {
        secrets: [
          { name: 'OK', value: 'x' },
          { name: 'PATH', value: 'x' },
        ],
      },
      at('secrets', 1, 'name'),
    ],
    ['a secret of ours', { secrets: [{ name: 'SALLYPORT_X', value: 'x' }] }, at('secrets', 0, 'name')],
    ['a secret for the linker', { secrets: [{ name: 'LD_PRELOAD', value: 'x' }] }, at('secrets', 0, 'name')],
    ['a malformed secret', { secrets: [{ name: 'A-B', value: 'x' }] }, at('secrets', 0, 'name')],
    ['a secret without a name', { secrets: [{ name: '', value: 'x' }] }, at('secrets', 0, 'name')],
    [
      'a secret twice',
      {
        secrets: [
          { name: 'A', value: 'x' },
          { name: 'A', value: '' },
        ],
      },
      at('secrets', 1, 'name'),
    ],
    [
      'too little cpu',
      { source_config: { resource_spec: { cpu: 0 } } },
      at('source_config', 'resource_spec', 'cpu'),
    ],
    [
      'more of Pods than is kept',
      { source_config: { resource_spec: { volumes: [{ name: 'x'.repeat(70_000) }] } } },
      at('source_config', 'resource_spec'),
    ],
    [
      'too much cpu',
      { source_config: { resource_spec: { cpu: 8.1 } } },
      at('source_config', 'resource_spec', 'cpu'),
    ],
    [
      'cpu of two decimals',
      { source_config: { resource_spec: { cpu: 0.15 } } },
      at('source_config', 'resource_spec', 'cpu'),
    ],
    [
      'too much for the queue',
      { source_config: { resource_spec: { queue_cpu_limit: 17 } } },
      at('source_config', 'resource_spec', 'queue_cpu_limit'),
    ],
    [
      'a label of ours',
      { source_config: { resource_spec: { labels: { 'sallyport.dev/a': 'b' } } } },
      at('source_config', 'resource_spec', 'labels', 'sallyport.dev/a'),
    ],
    [
      'a path of the node',
      { source_config: { resource_spec: { volumes: [{ name: 'a', hostPath: { path: '/' } }] } } },
      at('source_config', 'resource_spec', 'volumes', 0, 'hostPath'),
    ],
    [
      'a privileged container',
      { source_config: { resource_spec: { sidecars: [{ security_context: { privileged: true } }] } } },
      at('source_config', 'resource_spec', 'sidecars', 0, 'security_context', 'privileged'),
    ],
    [
      'limits below what is asked for',
      {
        source_config: {
          resource_spec: {
            ...{ min_scale: 3, max_scale: 2, cpu: 2, cpu_limit: 1 },
            memory_mb: 512,
            memory_limit_mb: 511,
          },
        },
      },
      ['max_scale', 'cpu_limit', 'memory_limit_mb']
        .map((name) => at('source_config', 'resource_spec', name))
        .flat(),
    ],
    [
      'a path out of the archive',
      { source_revision_config: { langgraph_config_path: 'a/../../b' } },
      at('source_revision_config', 'langgraph_config_path'),
    ],
    [
      'an absolute path',
      { source_revision_config: { langgraph_config_path: '/etc/passwd' } },
      at('source_revision_config', 'langgraph_config_path'),
    ],
    ['a listener', { source_config: { listener_id: randomUUID() } }, at('source_config', 'listener_id')],
    [
      'a custom_url',
      { source_config: { custom_url: 'https://a.example' } },
      at('source_config', 'custom_url'),
    ],
    ['an image', { source_revision_config: { image_uri: 'a/b' } }, at('source_revision_config', 'image_uri')],
    [
      'a repo_ref',
      { source_revision_config: { repo_ref: 'main' } },
      at('source_revision_config', 'repo_ref'),
    ],
    [
      'references to secrets',
      { secret_references: [{ name: 'A', secret_name: 'b', secret_key: 'c' }] },
      at('secret_references'),
    ],
    ['a name of spaces', { name: ' ' }, at('name')],
  ];
  it.each(wrong)('with %s, and says where', async (_, given, loc) => {
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, { ...smallest(), ...given });
    expect([status, body.detail.map((issue: { readonly loc: unknown }) => issue.loc)]).toEqual([422, loc]);
  });

  it.each([
    'a"',
    'a`',
    'a\\',
    'a\nb',
    'a\r',
    'a\t',
    'a|b',
    'a;b',
    '$a',
    'a>b',
    'a<b',
    'a & b',
    'a &&& b',
    '&&&&',
    'a &&',
    'A=b',
    "'a",
  ])('with the command %j', async (command) => {
    const source_config = { install_command: command, build_command: command };
    const { status, body } = await scene.ask('POST', DEPLOYMENTS, { ...smallest(), source_config });
    expect([status, body.detail.map((issue: { readonly loc: unknown }) => issue.loc)]).toEqual([
      422,
      [
        ['body', 'source_config', 'install_command'],
        ['body', 'source_config', 'build_command'],
      ],
    ]);
  });

  it('that would change what never changes: every place at once, and nothing is written', async () => {
    const { id, latest_revision_id: latest } = await scene.create({
      source_config: { deployment_type: 'dev' },
    });
    const { status, body } = await patch(id, {
      ...{ name: 'other', source: 'external_docker', revision_source: 'external_docker' },
      source_config: {
        deployment_type: 'prod',
        listener_id: randomUUID(),
        integration_id: 'x',
        repo_url: 'y',
      },
      secrets: [{ name: 'A', value: 'a' }],
    });
    const places = body.detail.map(({ loc }: { readonly loc: readonly string[] }) => loc.slice(1).join('.'));
    expect([status, places]).toEqual([
      422,
      [
        ...['name', 'source', 'revision_source', 'source_config.integration_id', 'source_config.repo_url'],
        ...['source_config.deployment_type', 'source_config.listener_id'],
      ],
    ]);
    const after = await scene.ask('GET', one(id));
    expect([after.body.latest_revision_id, after.body.secrets]).toEqual([latest, []]);
  });

  it('of another workspace, as one that does not exist', async () => {
    const { id, latest_revision_id: revision } = await scene.create();
    const as = { key: scene.otherKey };
    const calls = [
      ['GET', ''],
      ['PATCH', '', { display_name: 'x' }],
      ['DELETE', ''],
      ['GET', '/revisions'],
      ['POST', '/revisions', { source_revision_config: {} }],
      ['GET', `/revisions/${revision}`],
      ['POST', `/revisions/${revision}/redeploy`],
      ['POST', '/upload-url'],
      ['POST', '/push-token'],
    ] as const;
    for (const [method, rest, body] of calls) {
      const { status, body: got } = await scene.ask(method, `${one(id)}${rest}`, body, as);
      expect([method, rest, status, got.detail]).toEqual([
        method,
        rest,
        404,
        `Deployment ID ${id} not found.`,
      ]);
    }
    expect((await scene.ask('GET', one(id))).status).toBe(200);
  });
});
