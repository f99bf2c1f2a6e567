import { readFileSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { toOcsfEvent } from '../../../src/platform/audit/ocsf-event.ts';
import { listedEvent } from '../contract/listed-event.ts';
import { type OcsfEvent, ocsfEventSchema } from '../../../src/platform/audit/ocsf-schema.ts';
import { operations } from '../../../src/platform/audit/operations.ts';
import type { StoredRecord } from '../../../src/platform/audit/stored-record.ts';
import type { AuditEventRow } from '../../../src/platform/store/tables.ts';
import { apiActivity } from './ocsf-activity.ts';

const ORGANIZATION = '11111111-1111-4111-8111-111111111111';
const USER = '22222222-2222-4222-8222-222222222222';
const KEY = '33333333-3333-4333-8333-333333333333';
const RESOURCE = '44444444-4444-4444-8444-444444444444';

type Change = Partial<Omit<StoredRecord, 'enrichments'>> & Partial<StoredRecord['enrichments']>;

function recordOf({ operation_succeeded = true, api_key_id = KEY, user_id = USER, ...rest }: Change): string {
  const enrichments: StoredRecord['enrichments'] = {
    request_method: 'POST',
    request_path: '/v2/listeners',
    client_host: '192.0.2.7',
    client_port: 50_000,
    x_forwarded_for: '198.51.100.1, 2001:db8::1, unknown',
    response_status_code: 201,
    resource_ids: [RESOURCE],
    request_id: '66666666-6666-4666-8666-666666666666',
    ...rest,
  };
  return JSON.stringify({ operation_succeeded, api_key_id, user_id, enrichments } satisfies StoredRecord);
}

function rowOf(operation: string, record: string, workspaceId: string | null = null): AuditEventRow {
  return {
    organization_id: ORGANIZATION,
    seq: '1',
    id: '55555555-5555-4555-8555-555555555555',
    time: new Date('2026-11-22T01:02:03.004Z'),
    operation,
    workspace_id: workspaceId,
    record,
    previous_hash: Buffer.alloc(32),
    hash: Buffer.alloc(32),
  };
}

const noActor: Change = { api_key_id: null, user_id: null };
const noRequest: Change = {
  request_method: null,
  request_path: null,
  client_host: null,
  client_port: null,
  x_forwarded_for: null,
  response_status_code: null,
  resource_ids: [],
};
const records: Readonly<Record<string, string>> = {
  'of a user': recordOf({}),
  'of a service key': recordOf({ user_id: null }),
  'of a session': recordOf({ api_key_id: null }),
  'of the system': recordOf({ ...noActor, ...noRequest }),
  'from behind proxies': recordOf({ client_port: null, x_forwarded_for: '192.0.2.7, 10.0.0.1' }),
  'of named resources': recordOf({ resource_ids: [RESOURCE, USER], resource_names: ['TOKEN'] }),
  'that failed': recordOf({ operation_succeeded: false, response_status_code: 404 }),
  'without a response': recordOf({ operation_succeeded: false, response_status_code: null }),
  'from a unix socket': recordOf({ client_host: null, client_port: null }),
  'from a scoped address': recordOf({ client_host: `fe80::1%${'e'.repeat(60)}`, x_forwarded_for: null }),
  'from an invalid address': recordOf({ client_host: 'localhost', client_port: 70_000 }),
  'with an unknown method': recordOf({ request_method: 'PROPFIND' }),
  'whose record is damaged': '{"operation_succeeded":',
  'whose record has another shape': '{"operation_succeeded":"yes"}',
};

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat('ipv4', isIPv4);
ajv.addFormat('ipv6', isIPv6);
const isActivity = ajv.compile(apiActivity);
const isListed = new Ajv2020({ strict: false, allErrors: true }).compile(listedEvent);

const schemaPath = process.env['SALLYPORT_OCSF_SCHEMA'];

function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, member) => member ?? undefined));
}

function officialErrors(validate: ValidateFunction): readonly unknown[] {
  const errors: unknown[] = [];
  for (const operation of operations)
    for (const record of Object.values(records))
      if (!validate(withoutNulls(toOcsfEvent(rowOf(operation, record, USER)))))
        errors.push({ operation, errors: validate.errors });
  return errors;
}

describe('an event', () => {
  it.skipIf(schemaPath === undefined)(
    'is valid under the JSON Schema of OCSF (at SALLYPORT_OCSF_SCHEMA; skipped without it)',
    () => {
      const schema = JSON.parse(readFileSync(schemaPath ?? '', 'utf8'));
      const validate = new Ajv2020({ strict: false, allErrors: true }).compile(schema);
      expect(officialErrors(validate)).toEqual([]);
      expect(validate(withoutNulls({ ...toOcsfEvent(rowOf('login', '{}')), organization: 'x' }))).toBe(false);
    },
  );

  it.each(Object.entries(records))(
    '%s is valid under the rules of OCSF 1.7.0, without nulls',
    (_, record) => {
      for (const operation of operations) {
        const event = toOcsfEvent(rowOf(operation, record, USER));
        // The public contract has this null, of a session; nothing else is removed.
        const { user } = event.actor;
        if (user.credential_uid === null) Reflect.deleteProperty(user, 'credential_uid');
        isActivity(event);
        expect(isActivity.errors).toBeNull();
      }
    },
  );

  it.each(Object.entries(records))('%s is valid under our own schema', (_, record) => {
    for (const operation of operations)
      expect(ocsfEventSchema.safeParse(toOcsfEvent(rowOf(operation, record))).error).toBeUndefined();
  });

  it.each(operations)('%s has consistent uids and captions', (operation) => {
    const event = toOcsfEvent(rowOf(operation, recordOf({})));
    const captions = { 1: 'Create', 2: 'Read', 3: 'Update', 4: 'Delete', 99: 'Other' };
    expect(event.type_uid).toBe(event.class_uid * 100 + event.activity_id);
    expect(Math.floor(event.class_uid / 1000)).toBe(event.category_uid);
    expect(event.activity_name).toBe(captions[event.activity_id]);
    expect(event.api.operation).toBe(operation);
  });

  it.each([
    [records['of a user'], 1, 'Success'],
    [records['that failed'], 2, 'Failure'],
    [records['whose record is damaged'], 0, 'Unknown'],
  ])('has a caption for its status', (record, id, caption) => {
    expect(toOcsfEvent(rowOf('login', record ?? ''))).toMatchObject({ status_id: id, status: caption });
  });

  it.each(Object.entries(records))('%s is valid for existing clients of the list', (_, record) => {
    for (const operation of operations) {
      isListed(toOcsfEvent(rowOf(operation, record, USER)));
      expect(isListed.errors).toBeNull();
    }
    expect(isListed({})).toBe(false);
  });

  it('names user and key', () => {
    const { actor } = toOcsfEvent(rowOf('login', recordOf({})));
    expect(actor).toEqual({ user: { uid: USER, type: 'User', type_id: 1, credential_uid: KEY } });
  });

  it('has no credential without a key', () => {
    const { actor } = toOcsfEvent(rowOf('login', recordOf({ api_key_id: null })));
    expect(actor).toEqual({ user: { uid: USER, type: 'User', type_id: 1, credential_uid: null } });
  });

  it('names a service key as a user of its own', () => {
    const { actor } = toOcsfEvent(rowOf('login', recordOf({ user_id: null })));
    const type = { type: 'Service', type_id: 4 };
    expect(actor).toEqual({ user: { uid: KEY, name: 'service key', ...type, credential_uid: KEY } });
  });

  it.each([
    ['nothing from a client without a trusted proxy', 50_000, '192.0.2.7, 10.0.0.1', []],
    [
      'the proxies behind the client',
      null,
      '6.6.6.6, 192.0.2.7, 10.0.0.1, 10.0.0.2',
      ['10.0.0.1', '10.0.0.2'],
    ],
    ['not the client itself', null, '192.0.2.7', []],
    ['addresses without their ports', null, '192.0.2.7:4711, [2001:db8::1]:443', ['2001:db8::1']],
  ])('has as its intermediate addresses %s', (_, client_port, x_forwarded_for, expected) => {
    const { src_endpoint } = toOcsfEvent(rowOf('login', recordOf({ client_port, x_forwarded_for })));
    expect(src_endpoint).toEqual({ ip: '192.0.2.7', port: client_port ?? 0, intermediate_ips: expected });
  });

  it('names the platform as the actor of what it does by itself', () => {
    const event = toOcsfEvent(rowOf('delete_runs', records['of the system'] ?? ''));
    expect(event.actor).toEqual({
      user: {
        ...{ uid: '00000000-0000-0000-0000-000000000000', name: 'sallyport', credential_uid: null },
        ...{ type: 'System', type_id: 3 },
      },
      app_name: 'sallyport',
    });
    expect(event.src_endpoint).toEqual({
      ip: '0.0.0.0',
      port: 0,
      intermediate_ips: [],
      svc_name: 'sallyport',
    });
    expect(event.unmapped.original_audit_log.enrichments).not.toHaveProperty('request_method');
  });

  it('contains the native record', () => {
    const event = toOcsfEvent(rowOf('create_listener', recordOf({}), RESOURCE));
    expect(event.unmapped.original_audit_log).toMatchObject({
      id: event.metadata.uid,
      operation_name: 'create_listener',
      operation_succeeded: true,
      request_time: '2026-11-22T01:02:03.004Z',
      organization_id: ORGANIZATION,
      workspace_id: RESOURCE,
      enrichments: { x_forwarded_for: '198.51.100.1, 2001:db8::1, unknown', resource_ids: [RESOURCE] },
    });
    expect(event.unmapped.original_audit_log.ls_user_id).toBe(USER);
    expect(event.http_request.uid).toBe('66666666-6666-4666-8666-666666666666');
    expect(event.resources).toEqual([{ uid: RESOURCE }]);
  });

  it('names resources that have a name', () => {
    const event = toOcsfEvent(rowOf('update_workspace_secrets', records['of named resources'] ?? ''));
    expect(event.resources).toEqual([{ uid: RESOURCE, name: 'TOKEN' }, { uid: USER }]);
  });
});

describe('our schema rejects', () => {
  const event = toOcsfEvent(rowOf('login', recordOf({})));
  const rows: readonly (readonly [string, Partial<Record<keyof OcsfEvent | 'extra', unknown>>])[] = [
    ['an unknown attribute', { extra: 1 }],
    ['an unknown attribute inside', { api: { operation: 'login', extra: 1 } }],
    ['another class', { class_uid: 6001 }],
    ['an unknown type', { type_uid: 600_305 }],
    ['metadata without a version', { metadata: { uid: RESOURCE, product: {} } }],
    ['a response without a code', { http_response: {} }],
    ['an empty actor', { actor: {} }],
    ['a user without id and name', { actor: { user: { uid: null, credential_uid: KEY } } }],
    ['an empty source', { src_endpoint: {} }],
    ['resources as bare strings', { resources: [RESOURCE] }],
    ['a fractional time', { time: 1.5 }],
  ];
  it.each(rows)('%s', (_, change) => {
    expect(ocsfEventSchema.safeParse({ ...event, ...change }).success).toBe(false);
  });
});
