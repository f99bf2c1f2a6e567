// What OCSF 1.7.0 says of the class API Activity, as JSON Schema that knows no null and no unknown attribute: required and
// recommended attributes with their types, and of the optional ones those that are used. Written from the published
// dictionary, not from our own schema.
const text = { type: 'string' };
const integer = { type: 'integer' };

function object(properties: object, rest: object = {}): object {
  return { type: 'object', properties, additionalProperties: false, ...rest };
}

function anyOf(...names: readonly string[]): object {
  return { anyOf: names.map((name) => ({ required: [name] })) };
}

const address = { type: 'string', maxLength: 40, anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] };
const user = object(
  {
    uid: text,
    name: text,
    type: text,
    type_id: { enum: [0, 1, 2, 3, 4, 99] },
    // Deprecated since 1.6.0, and still valid.
    credential_uid: text,
  },
  anyOf('uid', 'name', 'account'),
);
const endpoint = object(
  {
    ip: address,
    port: { type: 'integer', minimum: 0, maximum: 65_535 },
    intermediate_ips: { type: 'array', items: address },
    svc_name: text,
    name: text,
  },
  anyOf(
    'ip',
    'uid',
    'name',
    'hostname',
    'svc_name',
    'instance_uid',
    'interface_uid',
    'interface_name',
    'domain',
  ),
);
const methods = ['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'];
const url = object({ path: text, url_string: text }, anyOf('path', 'url_string'));

export const apiActivity = object(
  {
    class_uid: { const: 6003 },
    class_name: { const: 'API Activity' },
    category_uid: { const: 6 },
    category_name: { const: 'Application Activity' },
    activity_id: { enum: [0, 1, 2, 3, 4, 99] },
    activity_name: text,
    type_uid: { enum: [600_300, 600_301, 600_302, 600_303, 600_304, 600_399] },
    severity_id: { enum: [0, 1, 2, 3, 4, 5, 6, 99] },
    severity: text,
    status_id: { enum: [0, 1, 2, 99] },
    status: text,
    time: integer,
    metadata: object(
      { version: { const: '1.7.0' }, uid: text, product: object({ name: text, vendor_name: text }) },
      { required: ['version', 'product'] },
    ),
    api: object({ operation: text }, { required: ['operation'] }),
    actor: object({ user, app_name: text }, anyOf('user', 'app_name')),
    src_endpoint: endpoint,
    http_request: object({ uid: text, http_method: { enum: methods }, url }),
    http_response: object({ code: integer }, { required: ['code'] }),
    resources: { type: 'array', items: object({ uid: text, name: text }, anyOf('uid', 'name')) },
    unmapped: { type: 'object' },
  },
  {
    required: [
      ...['class_uid', 'category_uid', 'activity_id', 'type_uid', 'severity_id', 'time', 'metadata'],
      ...['actor', 'api', 'src_endpoint'],
    ],
    // The dictionary: "See the severity attribute".
    if: { properties: { severity_id: { const: 99 } } },
    // oxlint-disable-next-line unicorn/no-thenable
    then: { required: ['severity'] },
  },
);
