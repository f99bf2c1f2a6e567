// gRPC libraries as real processes that find the proxy and its CA with their own environment variables. They offer only h2.
import { status as codes } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { type ClientName, isInstalled, runClient, titleOf } from './client-programs.ts';
import { createGrpcProxy, createGrpcServer, type GrpcProxy, type GrpcServer } from './grpc-scene.ts';
import { INJECTED } from './interop-scene.ts';

let proxy: GrpcProxy;
let server: GrpcServer;
let scratch: Scratch;
beforeAll(async () => {
  proxy = await createGrpcProxy();
  server = await createGrpcServer({
    unary({ request }, response) {
      if (request.toString() === 'fail') response({ code: codes.NOT_FOUND, details: 'no such “thing”' });
      else response(null, request);
    },
  });
  scratch = await createScratch();
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

const libraries: readonly ClientName[] = ['grpc-js', 'python-grpcio'];

describe.each(libraries.map((name) => [titleOf(name), name] as const))('%s', (_, name) => {
  it.runIf(isInstalled(name))('makes every kind of call', async () => {
    const caFile = await scratch.write('ca.pem', proxy.sidecar.caPem);
    const before = server.calls.length;
    const target = `good.test:${server.port}`;
    const url = `http://127.0.0.1:${proxy.sidecar.port}`;
    const { code, stdout, stderr } = await runClient(name, [target], { url, caFile });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      unary: 'one',
      serverStream: ['a', 'b'],
      clientStream: 'a b',
      bidi: ['a', 'b'],
      failure: `${codes.NOT_FOUND} no such “thing”`,
      big: 1_000_000,
    });
    const credentials = server.calls.slice(before).map((metadata) => metadata.get('authorization'));
    expect(credentials).toEqual(Array.from({ length: 6 }, () => [INJECTED]));
    for (let i = before; i < before + 6; i += 1)
      expect(await proxy.recordOf(target, i)).toMatchObject({ outcome: 'injected', protocol: 'h2' });
  });
});
