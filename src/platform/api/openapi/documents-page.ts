// The OpenAPI document as one HTML page: no script, nothing from another origin. Pure.
import { createHash } from 'node:crypto';
import type { Content, JsonSchema, Parameter, Reference } from './openapi-components.ts';
import type { OpenApiDocument, Operation } from './openapi.ts';

export type Page = { readonly html: string; readonly fields: Readonly<Record<string, string>> };

export function toPage(document: OpenApiDocument): Page {
  const { info, tags, components } = document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const sections = tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    return `<h2 id="${slug(name)}">${escape(name)}</h2>${own.map((one) => toSection(document, one)).join('')}`;
  });
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<section id="schema-${slug(name)}"><h3>${escape(name)}</h3>${toPre(schema)}</section>`,
  );
  const links = tags.map(({ name }) => `<a href="#${slug(name)}">${escape(name)}</a>`);
  return {
    html: `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(info.title)}</title><style>${STYLE}</style></head><body>
<h1>${escape(info.title)} <small>${escape(info.version)}</small></h1>
<p>${escape(info.description)} For programs: <a href="/openapi.json">/openapi.json</a>.</p>
<nav>${links.join(' ')} <a href="#schemas">Schemas</a></nav>
${sections.join('')}<h2 id="schemas">Schemas</h2>${schemas.join('')}</body></html>`,
    fields: { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY },
  };
}

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}' +
  'h2{margin-top:3rem;border-bottom:1px solid #d5d9de}section{margin:2rem 0}code,pre{font:14px/1.4 ui-monospace,monospace}' +
  'pre{background:#f4f6f8;padding:.75rem;overflow:auto}small,.note{color:#59636e;font-weight:normal}' +
  'table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}' +
  '@media(prefers-color-scheme:dark){body{color:#e6e9ed;background:#14181d}pre{background:#1e242b}a{color:#7fb4ff}' +
  'small,.note{color:#9aa5b1}h2{border-color:#39424c}}';

const POLICY: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

type Located = { readonly path: string; readonly method: string; readonly operation: Operation };

function toSection(document: OpenApiDocument, { path, method, operation }: Located): string {
  const parameters = operation.parameters.map((one) => resolve<Parameter>(document, one));
  const responses = Object.entries(operation.responses).map(
    ([status, one]) => [status, resolve<{ description: string; content?: Content }>(document, one)] as const,
  );
  const rows = [
    ...parameters.map((one) => [
      `<code>${escape(one.name)}</code>`,
      one.in,
      `${one.required ? 'required. ' : ''}${escape(one.description ?? '')} <code>${escape(JSON.stringify(one.schema))}</code>`,
    ]),
    ...responses.map(([status, { description }]) => [
      `<code>${status}</code>`,
      'response',
      escape(description),
    ]),
  ];
  const body = operation.requestBody?.content['application/json']?.schema;
  const response = responses.find(([status]) => status.startsWith('2'))?.[1].content?.['application/json']
    ?.schema;
  return `<section id="${operation.operationId}"><h3><code>${method} ${escape(path)}</code></h3>
<p>${escape(operation.summary)}. <span class="note">${escape(accessOf(operation))}</span></p>
<table><tr><th>name</th><th>in</th><th></th></tr>${rows.map((cells) => `<tr><td>${cells.join('</td><td>')}</td></tr>`).join('')}</table>
${body === undefined ? '' : `<p>Body</p>${toPre(body)}`}${response === undefined ? '' : `<p>Response</p>${toPre(response)}`}
<p>Example</p><pre>${escape(toCurl({ path, method, operation }))}</pre></section>`;
}

function accessOf(operation: Operation): string {
  const permission = operation['x-permission'];
  const tracked = operation['x-audit-operation'];
  const where: Readonly<Record<string, string>> = {
    anyone: 'No key is needed.',
    organization: `Needs ${permission} in the organization.`,
    workspace: `Needs ${permission} in the workspace.`,
    sandbox: 'Needs the token of a sandbox.',
  };
  const who = where[operation['x-access']] ?? `Needs access to: ${operation['x-access']}.`;
  return tracked === undefined ? who : `${who} The audit operation is ${tracked}.`;
}

function toCurl({ path, method, operation }: Located): string {
  const words = ['curl'];
  if (method !== 'GET') words.push('-X', method);
  if (operation['x-access'] !== 'anyone') words.push('-H', '"X-Api-Key: $KEY"');
  if (operation.requestBody !== undefined)
    words.push('-H', "'Content-Type: application/json'", '-d', "'{…}'");
  return `${words.join(' ')} "$PLATFORM${path}"`;
}

function resolve<T>(document: OpenApiDocument, one: T | Reference): T {
  if (typeof one !== 'object' || one === null || !('$ref' in one)) return one as T;
  const keys = one.$ref.slice(2).split('/');
  return keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as T;
}

/** With its references as links. */
function toPre(schema: JsonSchema): string {
  const text = escape(JSON.stringify(schema, undefined, 2));
  return `<pre>${text.replaceAll(
    /#\/components\/schemas\/([\w.-]+)/g,
    (_, name: string) => `<a href="#schema-${slug(name)}">${name}</a>`,
  )}</pre>`;
}

function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, '-');
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
