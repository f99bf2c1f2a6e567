// The Dockerfile, read as data: whatever it copies is there and sent, what it runs is what the build makes, and its
// user has no rights. An engine is not needed.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDockerfile } from '../../scripts/dockerfile.ts';
import { launcher, projectRoot, runToEnd } from '../support/spawned-process.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');

const instructions = parseDockerfile(read('Dockerfile'));
const final = Math.max(...instructions.map(({ stage }) => stage));
const values = (name: string, stage: number = final): readonly string[] =>
  instructions.filter((one) => one.name === name && one.stage === stage).map(({ value }) => value);

describe('the image', () => {
  const copies = instructions.filter(({ name }) => name === 'COPY').map(({ value }) => value.split(' '));
  const sources = copies
    .filter(([first]) => !first?.startsWith('--from'))
    .flatMap((words) => words.slice(0, -1));

  it('copies what exists, and what is sent to the engine', () => {
    const sent = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    expect(sources.length).toBeGreaterThan(3);
    for (const source of sources) {
      expect(existsSync(join(projectRoot, source)), source).toBe(true);
      expect(sent).toContain(`!${source}`);
    }
    expect(sent.map((line) => line.slice(1)).filter((source) => !sources.includes(source))).toEqual([]);
  });

  it('takes from the build what the build makes', () => {
    const taken = copies.filter(([first]) => first === '--from=build').map(([, source]) => source);
    expect(taken).toEqual(['/build/dist']);
    expect(read('scripts/build.ts')).toContain("'dist'");
    expect(read('package.json')).toContain('"build": "node scripts/build.ts"');
  });

  it('needs one writable directory', () => {
    const environment = values('ENV').join(' ');
    const [, state = ''] = /SALLYPORT_STATE_DIR=(\S+)/.exec(environment) ?? [];
    const [, socket = ''] = /SALLYPORT_ADMIN_LISTEN=unix:(\S+)/.exec(environment) ?? [];
    expect(state).not.toBe('');
    expect(socket.startsWith(`${state}/`)).toBe(true);
  });

  it('enters by the launcher, with every protection set before the first instruction', () => {
    const entry: readonly string[] = JSON.parse(values('ENTRYPOINT')[0] ?? '[]');
    const [folder] = values('WORKDIR');
    expect(entry[0]).toBe('node');
    expect(entry.at(-1)).toBe(`${folder}/bin/sallyport.js`);
    const [, flags = ''] = /^const FLAGS = (\[.*\]);$/m.exec(readFileSync(launcher, 'utf8')) ?? [];
    expect(entry.slice(1, -1)).toEqual(JSON.parse(flags.replaceAll("'", '"')));
    expect(JSON.parse(values('CMD')[0] ?? '[]')).toEqual(['proxy']);
  });

  it('runs the Node that the lockfile holds', () => {
    const { optionalDependencies } = JSON.parse(read('package.json'));
    const runtimes = Object.entries(optionalDependencies).filter(([name]) => /^node-/.test(name));
    const versions = new Set(runtimes.map(([, version]) => version));
    expect(instructions[0]).toMatchObject({
      name: 'ARG',
      value: `NODE_IMAGE=node:${[...versions].join('?')}-slim`,
    });
    expect(
      new Set(instructions.filter(({ name }) => name === 'FROM').map(({ value }) => value.split(' ')[0])),
    ).toEqual(new Set(['${NODE_IMAGE}']));
  });

  it('has a user without rights, who owns the state and cannot change the code', () => {
    expect(values('USER')).toEqual(['10001:10001']);
    const run = values('RUN').join('\n');
    expect(run).toContain('install -d -o 10001 -g 10001 -m 0700 /var/lib/sallyport/secret');
    expect(run).toContain('chown -R 0:0 "$NODE_COMPILE_CACHE"');
    expect(instructions.some(({ value }) => value.includes('--chown'))).toBe(false);
  });

  it('listens off loopback to private networks only, and keeps its state in one place', () => {
    const env = new Map(
      values('ENV')
        .flatMap((line) => line.split(' '))
        .map((pair) => pair.split('=') as [string, string]),
    );
    expect(env.get('SALLYPORT_LISTEN')).toBe('0.0.0.0:3128');
    expect(values('EXPOSE')).toEqual(['3128']);
    expect(env.get('SALLYPORT_STATE_DIR')).toBe('/var/lib/sallyport');
    const clients = env.get('SALLYPORT_ALLOW_CLIENTS')?.split(',') ?? [];
    expect(clients.filter((cidr) => !/^(127|10|172\.16|192\.168|::1|fc00)/.test(cidr))).toEqual([]);
  });

  it.each(['0.0.0.0:', ':', '', '127.0.0.1:', 'localhost:', '[::]:'])(
    'asks its own health where it listens on %sPORT',
    async (host) => {
      const [check = ''] = values('HEALTHCHECK');
      const [, command = '[]'] = /CMD (\[.*\])$/.exec(check) ?? [];
      const [node, ...args]: readonly string[] = JSON.parse(command);
      expect(node).toBe('node');
      const asked: (string | undefined)[] = [];
      const server = createServer((request, response) => {
        asked.push(request.url);
        response.writeHead(asked.length === 1 ? 200 : 503).end();
      });
      await once(server.listen(0, host === '[::]:' ? '::1' : '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const env = { SALLYPORT_LISTEN: `${host}${port}` };
      const ends = [await runToEnd(process.execPath, args, { env })];
      ends.push(await runToEnd(process.execPath, args, { env }));
      server.close();
      expect(ends.map(({ code }) => code)).toEqual([0, 1]);
      expect(asked).toEqual(['/healthz', '/healthz']);
    },
  );
});
