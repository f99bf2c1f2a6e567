// One request of the OpenAPI document for people: who may send it, its parameters, its responses, and an example for a shell. Pure.
import { Html, html } from '../../../base/html/html.ts';
import type { Content, JsonSchema, Parameter, Reference, SecurityScheme } from './openapi-components.ts';
import type { OpenApiDocument, Operation } from './openapi.ts';

export type Located = { readonly path: string; readonly method: string; readonly operation: Operation };
type Described = { readonly description: string; readonly content?: Content };

export function operationSection(document: OpenApiDocument, one: Located): Html {
  const { path, method, operation } = one;
  const { operationId, summary } = operation;
  const parameters = operation.parameters.map((given) => resolve<Parameter>(document, given));
  const responses = Object.entries(operation.responses).map(
    ([status, given]) => [status, resolve<Described>(document, given)] as const,
  );
  const body = operation.requestBody?.content['application/json']?.schema;
  const success = responses.find(([status]) => status.startsWith('2'))?.[1];
  return html`<article id="${operationId}"><h3><code>${method} ${path}</code> <a href="#${operationId}" aria-label="Link to ${method} ${path}">#</a></h3>
<p>${summary}. <span class="faint">${accessOf(operation)}</span></p>
${parameterTable(parameters)}${responseTable(responses)}${schemaDetails('Request body', body)}
${schemaDetails('Response body', success?.content?.['application/json']?.schema)}
<h4>Example</h4><pre>${toCurl(document, one)}</pre></article>`;
}

function parameterTable(parameters: readonly Parameter[]): Html | undefined {
  if (parameters.length === 0) return undefined;
  const rows = parameters.map(
    ({ name, in: place, required, description = '', schema }) =>
      html`<tr><td class="lead"><code>${name}</code></td><td class="short">${place}${required && ', required'}</td>
<td>${description} <code class="faint">${JSON.stringify(schema)}</code></td></tr>`,
  );
  return html`<h4>Parameters</h4><table><thead><tr><th scope="col">Name</th><th scope="col">Where</th><th scope="col">Meaning and schema</th></tr></thead>
<tbody>${rows}</tbody></table>`;
}

function responseTable(responses: readonly (readonly [string, Described])[]): Html {
  const rows = responses.map(
    ([status, { description }]) =>
      html`<tr><td class="short"><code>${status}</code></td><td>${description}</td></tr>`,
  );
  return html`<h4>Responses</h4><table class="statuses"><thead><tr><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead><tbody>${rows}</tbody></table>`;
}

function schemaDetails(title: string, schema: JsonSchema | undefined): Html | undefined {
  return schema && html`<details><summary>${title}</summary>${schemaText(schema)}</details>`;
}

/** With its references as links. */
export function schemaText(schema: JsonSchema): Html {
  const text = String(html`${JSON.stringify(schema, undefined, 2)}`);
  const linked = text.replaceAll(
    /#\/components\/schemas\/([\w.-]+)/g,
    (_, name: string) => `<a href="#schema-${slug(name)}">${name}</a>`,
  );
  return html`<pre>${Html.fromTemplate(linked)}</pre>`;
}

export function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9_]+/g, '-');
}

function accessOf(operation: Operation): string {
  const permission = operation['x-permission'];
  const tracked = operation['x-audit-operation'];
  const where: Readonly<Record<string, string>> = {
    anyone: 'No key is needed.',
    organization: `Needs the permission ${permission} in the organization.`,
    workspace: `Needs the permission ${permission} in the workspace.`,
    sandbox: 'Needs the token of a sandbox.',
  };
  const who = where[operation['x-access']] ?? `Needs access to: ${operation['x-access']}.`;
  return tracked === undefined ? who : `${who} The audit log has it as ${tracked}.`;
}

function toCurl(document: OpenApiDocument, { path, method, operation }: Located): string {
  const words = ['curl'];
  if (method !== 'GET') words.push('-X', method);
  const [scheme] = Object.keys(operation.security[0] ?? {});
  const known = scheme === undefined ? undefined : document.components.securitySchemes[scheme];
  const { header, query } = credentialOf(known);
  if (header !== undefined) words.push('-H', `"${header}"`);
  words.push(...bodyOf(Object.keys(operation.requestBody?.content ?? {})));
  const named = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  return `${words.join(' ')} "$URL${named}${query === undefined ? '' : `?${query}`}"`;
}

function credentialOf(scheme: SecurityScheme | undefined): {
  readonly header?: string;
  readonly query?: string;
} {
  if (scheme === undefined) return {};
  if (scheme.type === 'http') return { header: 'Authorization: Bearer $KEY' };
  return scheme.in === 'query' ? { query: `${scheme.name}=$KEY` } : { header: `${scheme.name}: $KEY` };
}

function bodyOf(types: readonly string[]): readonly string[] {
  const [first] = types;
  if (first === undefined) return [];
  if (types.includes('application/json')) return ['-H', "'Content-Type: application/json'", '-d', "'{…}'"];
  if (first === 'multipart/form-data') return ['-F', 'NAME=@FILE'];
  return ['-H', `'Content-Type: ${first}'`, '--data-binary', '@FILE'];
}

function resolve<T>(document: OpenApiDocument, one: T | Reference): T {
  if (typeof one !== 'object' || one === null || !('$ref' in one)) return one as T;
  const keys = one.$ref.slice(2).split('/');
  return keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as T;
}
