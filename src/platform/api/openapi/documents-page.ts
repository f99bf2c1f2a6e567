// The OpenAPI document as one HTML page for people: no script, nothing from another origin. Pure.
import { COMMON_STYLE } from '../../../base/html/common-style.ts';
import { Html, html } from '../../../base/html/html.ts';
import { pageFieldsOf } from '../../../base/html/page-fields.ts';
import { type Located, operationSection, schemaText, slug } from './documents-operation.ts';
import type { OpenApiDocument } from './openapi.ts';

export type Page = { readonly html: string; readonly fields: Readonly<Record<string, string>> };

export function toPage(document: OpenApiDocument): Page {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const groups = document.tags.map(({ name, description }) => ({
    ...{ name, description },
    own: operations.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const { title, version, description } = document.info;
  const page = html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${Html.fromTemplate(STYLE)}</style></head><body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>${title} <small>${version}</small></h1><nav aria-label="For programs"><a href="openapi.json">openapi.json</a></nav></header>
<div class="columns">${contents(groups)}<main id="content">
<section id="start"><p>${description}</p>${authentication(document, operations)}${preparation()}</section>
${groups.map((group) => groupSection(document, group))}
<section><h2 id="schemas">Schemas</h2>${schemas(document)}</section></main></div></body></html>`;
  return { html: String(page), fields: pageFieldsOf({ style: STYLE }) };
}

type Group = {
  readonly name: string;
  readonly description: string | undefined;
  readonly own: readonly Located[];
};

/** Closed groups, so that the way to each of them fits on a screen. */
function contents(groups: readonly Group[]): Html {
  const entries = groups.map(({ name, own }) => {
    const links = own.map(
      ({ path, method, operation }) =>
        html`<li><a href="#${operation.operationId}"><b>${method}</b> ${path}</a></li>`,
    );
    return html`<details><summary>${name} <small>${own.length}</small></summary><ul>
<li><a href="#${slug(name)}">About</a></li>${links}</ul></details>`;
  });
  return html`<nav class="contents" aria-label="Contents"><a href="#start">Start</a>${entries}<a href="#schemas">Schemas</a></nav>`;
}

/** The ways to authenticate that operations of the document have. */
function authentication(document: OpenApiDocument, operations: readonly Located[]): Html {
  const used = new Set(
    operations.flatMap(({ operation }) => operation.security.flatMap((one) => Object.keys(one))),
  );
  const schemes = Object.entries(document.components.securitySchemes).filter(([name]) => used.has(name));
  const rows = schemes.map(([name, { type, name: field = '', in: place = '', description = '' }]) => {
    const sent =
      type === 'http' ? 'Authorization: Bearer …' : place === 'query' ? `?${field}=…` : `${field}: …`;
    return html`<tr><td class="lead">${name}</td><td data-label="Sent as"><code>${sent}</code></td><td>${description}</td></tr>`;
  });
  if (rows.length === 0) return html``;
  return html`<h2 id="authentication">Authentication</h2><p>Each request below says what it needs.</p>
<table><thead><tr><th scope="col">Name</th><th scope="col">Sent as</th><th scope="col">What it is</th></tr></thead><tbody>${rows}</tbody></table>`;
}

function preparation(): Html {
  return html`<h2 id="examples">Examples</h2><p>Each request has one for a shell. They use these variables, and one for each part of a path that you
choose:</p><pre>export URL=ADDRESS   # of this page, without /docs
export KEY=SECRET    # what the request needs, as its text says</pre>`;
}

function groupSection(document: OpenApiDocument, { name, description, own }: Group): Html {
  return html`<section><h2 id="${slug(name)}">${name}</h2>${description !== undefined && description !== name && html`<p>${description}.</p>`}
${own.map((one) => operationSection(document, one))}</section>`;
}

function schemas({ components }: OpenApiDocument): readonly Html[] {
  return Object.entries(components.schemas).map(
    ([name, schema]) =>
      html`<article id="schema-${slug(name)}"><h3>${name}</h3>${schemaText(schema)}</article>`,
  );
}

const STYLE: string =
  COMMON_STYLE +
  '.skip{position:absolute;left:-999rem}.skip:focus{position:static}main,.contents{padding:.75rem 1rem;min-width:0}' +
  '.contents{font-size:.9rem}.contents>a,.contents summary{display:block;padding:.15rem 0}.contents summary{display:list-item}' +
  '.contents ul{list-style:none;margin:.15rem 0 .5rem;padding:0 0 0 1rem}.contents li{padding:.1rem 0}.contents b{font-size:.75rem}' +
  '@media(min-width:1000px){.columns{display:grid;grid-template-columns:20rem minmax(0,1fr);max-width:1800px;margin:0 auto}' +
  '.contents{position:sticky;top:0;max-height:100vh;overflow:auto;border-right:1px solid var(--line)}main{padding:0 2rem;max-width:80rem}}' +
  'section>p{max-width:48rem}h2{font-size:1.4rem;margin:2.5rem 0 .75rem;border-bottom:1px solid var(--line)}' +
  'article{margin:0 0 2rem;padding-top:.5rem}article h3{font-size:1.1rem;margin:0 0 .25rem}article h3 code{font-size:1rem;font-weight:600}' +
  'article h3 a{text-decoration:none;font-weight:400}h4{font-size:.95rem;margin:.75rem 0 .15rem}:target{scroll-margin-top:.5rem}' +
  'article:target{border-left:3px solid var(--link);padding-left:.75rem}pre{max-height:none}td code{overflow-wrap:anywhere}' +
  'small{font-weight:400}.statuses td.short{width:5rem}@media(max-width:999px){.contents{columns:2 10rem}}' +
  '@media(max-width:700px){td{display:block}.statuses td{display:inline}}';
