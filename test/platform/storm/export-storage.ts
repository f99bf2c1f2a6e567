// An S3 server whose objects are files, so that it can be killed at any moment: `node export-storage.ts DIRECTORY PORT`. An object is there
// as soon as its description is; an upload that was being completed is completed at the next start.
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

type Fields = Readonly<Record<string, string>>;
type Described = { readonly key: string; readonly fields: Fields };

/** The objects and the open uploads in a directory, whoever wrote them. Keys as `/bucket/key`. */
export class StoredObjects {
  readonly #objects: string;
  readonly #uploads: string;

  constructor(directory: string) {
    this.#objects = join(directory, 'objects');
    this.#uploads = join(directory, 'uploads');
    for (const folder of [this.#objects, this.#uploads]) mkdirSync(folder, { recursive: true });
  }

  get keys(): readonly string[] {
    const names = readdirSync(this.#objects).filter((name) => name.endsWith('.json'));
    return names.map((name) => describedIn(join(this.#objects, name)).key);
  }

  get openUploads(): readonly (Described & { readonly id: string })[] {
    const ids = readdirSync(this.#uploads).filter((name) => !name.startsWith('.') && !name.includes('~'));
    return ids.map((id) => ({ id, ...describedIn(join(this.#uploads, id, 'about.json')) }));
  }

  put(key: string, content: Uint8Array, fields: Fields): void {
    const file = this.#fileOf(key);
    replace(file, content);
    replace(`${file}.json`, JSON.stringify({ key, fields }));
  }

  find(key: string): (Described & { readonly content: Buffer }) | undefined {
    const file = this.#fileOf(key);
    try {
      return { ...describedIn(`${file}.json`), content: readFileSync(file) };
    } catch {
      return undefined;
    }
  }

  remove(key: string): void {
    rmSync(`${this.#fileOf(key)}.json`, { force: true });
  }

  begin(key: string, fields: Fields): string {
    const id = randomUUID();
    const making = join(this.#uploads, `.${id}`);
    mkdirSync(making);
    writeFileSync(join(making, 'about.json'), JSON.stringify({ key, fields }));
    renameSync(making, join(this.#uploads, id));
    return id;
  }

  isOpen(id: string): boolean {
    return this.openUploads.some((upload) => upload.id === id);
  }

  addPart(id: string, number: number, content: Uint8Array): void {
    replace(join(this.#uploads, id, `part-${String(number).padStart(5, '0')}`), content);
  }

  abort(id: string): void {
    renameSync(join(this.#uploads, id), join(this.#uploads, `.${id}`));
    rmSync(join(this.#uploads, `.${id}`), { recursive: true });
  }

  /** From the rename on it is completed, whatever happens then. */
  complete(id: string): void {
    renameSync(join(this.#uploads, id), join(this.#uploads, `${id}~completing`));
    this.#finish(`${id}~completing`);
  }

  /** What a killed server had begun to complete. */
  recover(): void {
    for (const name of readdirSync(this.#uploads)) {
      if (name.endsWith('~completing')) this.#finish(name);
      else if (name.startsWith('.')) rmSync(join(this.#uploads, name), { recursive: true, force: true });
    }
  }

  #finish(name: string): void {
    const folder = join(this.#uploads, name);
    const parts = readdirSync(folder).filter((part) => /^part-\d+$/.test(part));
    const content = Buffer.concat(parts.toSorted().map((part) => readFileSync(join(folder, part))));
    const { key, fields } = describedIn(join(folder, 'about.json'));
    this.put(key, content, fields);
    rmSync(folder, { recursive: true });
  }

  #fileOf(key: string): string {
    return join(this.#objects, createHash('sha256').update(key).digest('hex'));
  }
}

function describedIn(file: string): Described {
  return JSON.parse(readFileSync(file, 'utf8')) as Described;
}

/** At once, or not at all. */
function replace(file: string, content: Uint8Array | string): void {
  const temporary = `${file}.${randomUUID()}~`;
  writeFileSync(temporary, content);
  renameSync(temporary, file);
}

async function serve(objects: StoredObjects, request: IncomingMessage, response: ServerResponse) {
  const url = new URL(request.url ?? '', 'http://s3');
  const key = decodeURIComponent(url.pathname);
  const query = url.searchParams;
  const id = query.get('uploadId') ?? '';
  const fields = metadataOf(request);
  const body = await buffer(request);
  const send = (status: number, xml = '', more: Fields = {}): void => {
    response.writeHead(status, { 'content-type': 'application/xml', ...more }).end(xml);
  };
  if (request.method === 'GET' && query.has('uploads')) return send(200, listed(objects, key, query));
  if (request.method === 'POST' && query.has('uploads'))
    return send(
      200,
      element('InitiateMultipartUploadResult', element('UploadId', objects.begin(key, fields))),
    );
  if (id !== '' && !objects.isOpen(id)) return send(404, element('Error', element('Code', 'NoSuchUpload')));
  if (request.method === 'PUT' && id !== '') {
    objects.addPart(id, Number(query.get('partNumber')), body);
    return send(200, '', { etag: `"${query.get('partNumber')}"` });
  }
  if (request.method === 'POST' && id !== '') {
    objects.complete(id);
    return send(200, element('CompleteMultipartUploadResult', element('ETag', '"whole"')));
  }
  if (request.method === 'DELETE') {
    if (id === '') objects.remove(key);
    else objects.abort(id);
    return send(204);
  }
  if (request.method === 'PUT') {
    objects.put(key, body, fields);
    return send(200, '', { etag: '"whole"' });
  }
  const found = objects.find(key);
  if (found === undefined) return send(404, element('Error', element('Code', 'NoSuchKey')));
  response.writeHead(200, { 'content-length': found.content.length, ...found.fields });
  response.end(request.method === 'HEAD' ? undefined : found.content);
}

function listed(objects: StoredObjects, bucket: string, query: URLSearchParams): string {
  const start = `${bucket.replace(/\/?$/, '/')}${query.get('prefix') ?? ''}`;
  const uploads = objects.openUploads.filter(({ key }) => key.startsWith(start));
  const items = uploads.map(({ id, key }) =>
    element('Upload', element('Key', key.split('/').slice(2).join('/')) + element('UploadId', id)),
  );
  return element('ListMultipartUploadsResult', element('IsTruncated', 'false') + items.join(''));
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

function metadataOf({ headers }: IncomingMessage): Fields {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
  return Object.fromEntries(own) as Fields;
}

if (import.meta.main) {
  const [directory = '', port = '0'] = process.argv.slice(2);
  const objects = new StoredObjects(directory);
  objects.recover();
  const server = createServer((request, response) => {
    // A client that was killed in the middle of a body.
    serve(objects, request, response).catch(() => response.destroy());
  });
  process.once('SIGTERM', () => process.exit(0));
  server.listen(Number(port), '127.0.0.1', () => {
    console.log(JSON.stringify({ msg: 'listening', port: (server.address() as AddressInfo).port }));
  });
}
