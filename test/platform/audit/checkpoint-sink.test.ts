import type { ServerResponse } from 'node:http';
import { appendFile, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { InputError } from '../../../src/base/input-error.ts';
import { type CheckpointSink, openCheckpointSink } from '../../../src/platform/audit/checkpoint-sink.ts';
import { openBucket } from '../../../src/platform/store/files/object-store.ts';
import { openS3Server, s3Credentials, type S3Server } from '../../support/s3-server.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

async function linesOf(sink: CheckpointSink): Promise<readonly string[]> {
  return Array.fromAsync(sink.read());
}

describe('a file of checkpoints', () => {
  let scratch: Scratch;
  let file: string;
  beforeEach(async () => {
    scratch = await createScratch();
    file = join(scratch.path, 'deep', 'checkpoints.jsonl');
  });
  afterEach(() => scratch[Symbol.asyncDispose]());

  it('is empty when it does not exist, and is created readable only by its owner', async () => {
    const sink = openCheckpointSink(file);
    expect(await linesOf(sink)).toEqual([]);
    await sink.append(['{"a":1}\n']);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await linesOf(openCheckpointSink(file))).toEqual(['{"a":1}']);
  });

  it('loses nothing when several sinks append at once', async () => {
    const sinks = Array.from({ length: 6 }, () => openCheckpointSink(file));
    const batches = sinks.flatMap((sink, by) =>
      Array.from({ length: 20 }, (_, n) => ({ sink, lines: [`${by}-${n}-a\n`, `${by}-${n}-b\n`] })),
    );
    await Promise.all(batches.map(({ sink, lines }) => sink.append(lines)));
    const expected = batches.flatMap(({ lines }) => lines.map((line) => line.trim()));
    expect((await linesOf(openCheckpointSink(file))).toSorted()).toEqual(expected.toSorted());
  });

  it('continues on a new line after a write that was cut off', async () => {
    const sink = openCheckpointSink(file);
    await sink.append(['one\n']);
    await appendFile(file, 'tw');
    await sink.append(['three\n']);
    expect(await linesOf(sink)).toEqual(['one', 'tw', 'three']);
    expect(await readFile(file, 'utf8')).toBe('one\ntw\nthree\n');
  });

  it('that cannot be read is an error, not an empty file', async () => {
    await expect(linesOf(openCheckpointSink(scratch.path))).rejects.toThrow('EISDIR');
  });
});

describe('a bucket of checkpoints', () => {
  let fake: S3Server;
  beforeEach(async () => {
    for (const [name, value] of Object.entries(s3Credentials)) vi.stubEnv(name, value);
    vi.stubEnv('AWS_SESSION_TOKEN', undefined);
    fake = await openS3Server();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await fake[Symbol.asyncDispose]();
  });

  it('stores each batch as a new object and returns all of them', async () => {
    const location = `s3://logs/audit/here?endpoint=${encodeURIComponent(fake.endpoint)}&region=eu-central-1`;
    const sink = openCheckpointSink(location);
    expect(await linesOf(sink)).toEqual([]);
    await sink.append(['one\n', 'two\n']);
    await sink.append(['three\n']);
    await openCheckpointSink(location.replace('audit/here', 'audit/her')).append(['of another prefix\n']);
    expect((await linesOf(openCheckpointSink(location))).toSorted()).toEqual(['one', 'three', 'two']);
    const puts = fake.seen.filter(({ method }) => method === 'PUT');
    expect(puts.map(({ headers }) => headers['if-none-match'])).toEqual(['*', '*', '*']);
    expect(puts[0]?.url).toMatch(/^\/logs\/audit\/here\/[^/]+\.jsonl(\?|$)/);
    expect(puts[0]?.headers.authorization).toContain('/eu-central-1/s3/aws4_request');
    expect(puts[0]?.headers).not.toHaveProperty('x-amz-trailer');
    expect(Object.keys(puts[0]?.headers ?? {}).filter((name) => name.includes('checksum'))).toEqual([]);
  });

  it('uses the endpoint of the usual AWS variable', async () => {
    vi.stubEnv('AWS_ENDPOINT_URL', fake.endpoint);
    const sink = openCheckpointSink('s3://logs');
    await sink.append(['one\n']);
    expect(await linesOf(sink)).toEqual(['one']);
  });

  it('that rejects requests is an error', async () => {
    fake.server.removeAllListeners('request');
    fake.server.on('request', (_, response) => response.writeHead(403).end());
    const sink = openCheckpointSink(`s3://logs/a?endpoint=${encodeURIComponent(fake.endpoint)}`);
    await expect(sink.append(['one\n'])).rejects.toThrow();
    await expect(linesOf(sink)).rejects.toThrow();
  });

  it.each([
    ['never responds', () => undefined],
    [
      'never ends its response',
      (response: ServerResponse) => void response.writeHead(200).write('<?xml version="1.0"?>'),
    ],
  ])('that %s is an error', async (_, reply) => {
    fake.server.removeAllListeners('request');
    fake.server.on('request', (_request, response) => reply(response));
    const bucket = openBucket(`s3://logs/a?endpoint=${encodeURIComponent(fake.endpoint)}`, 300);
    await expect(bucket.create('one', 'one')).rejects.toThrow(/abort/i);
    await expect(Array.fromAsync(bucket.list())).rejects.toThrow(/abort/i);
    await expect(bucket.read('one')).rejects.toThrow(/abort/i);
  });

  it.each(['s3://', 's3:///prefix', 's3://key:secret@bucket/prefix'])(
    'rejects the location %s',
    (location) => {
      expect(() => openCheckpointSink(location)).toThrow(InputError);
    },
  );
});
