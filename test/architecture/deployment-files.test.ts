// The files of deploy/, read as data: ports, paths, variables and users are those of the code and of the image. Nothing of a
// cluster or of an engine is needed; `npm run deploy:check` asks a real API server.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { configVariables, parseConfig } from '../../src/sidecar/config.ts';
import { launcher, projectRoot } from '../support/spawned-process.ts';

type Mount = { readonly name: string; readonly mountPath: string };
type Container = {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly Mount[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly restartPolicy?: string;
  readonly args?: readonly string[];
};
type PodSpec = {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly terminationGracePeriodSeconds?: number;
  readonly volumes?: readonly { readonly name: string }[];
};
type Manifest = {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: PodSpec & { readonly template?: { readonly spec: PodSpec } } & Readonly<
      Record<string, unknown>
    >;
};

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const documentsOf = (file: string) =>
  parseAllDocuments(read(file)).map((one) => one.toJS({ maxAliasCount: 0 }));
const known = new Set(configVariables().map(({ name }) => name));
const dockerfile = read('Dockerfile').replaceAll(/\\\n\s*/g, '');
const imageVariables = Object.fromEntries(
  [...dockerfile.matchAll(/\b(SALLYPORT_[A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value]),
);
const [, USER] = /^USER (\d+):/m.exec(dockerfile) ?? [];
const [, PORT] = /^EXPOSE (\d+)$/m.exec(dockerfile) ?? [];
const [, STATE = ''] = /SALLYPORT_STATE_DIR=(\S+)/.exec(dockerfile) ?? [];

const podsOf = (all: readonly Manifest[]): readonly PodSpec[] =>
  all
    .filter(({ kind }) => kind === 'Pod' || kind === 'Deployment')
    .map(({ spec }) => spec.template?.spec ?? spec);
const containersOf = ({ initContainers = [], containers }: PodSpec) => [...initContainers, ...containers];
const variablesOf = ({ env = [] }: Container): Record<string, string> =>
  Object.fromEntries(env.map(({ name, value = '' }) => [name, value]));

describe('the manifests of Kubernetes', () => {
  const files = globSync('deploy/kubernetes/*.yaml', { cwd: projectRoot }).toSorted();
  const all = files.flatMap((file) => documentsOf(file)) as readonly Manifest[];
  const pods = podsOf(all);
  const proxies = pods.flatMap(containersOf).filter(({ name }) => name === 'sallyport');
  const agents = pods.flatMap(containersOf).filter(({ name }) => name === 'agent');

  it('have the proxy as a Pod of its own, and as a sidecar', () => {
    expect(files).toEqual(['deploy/kubernetes/proxy-pod.yaml', 'deploy/kubernetes/sidecar.yaml']);
    expect([proxies.length, agents.length]).toEqual([2, 2]);
    const { version } = JSON.parse(read('package.json'));
    expect(new Set(proxies.map(({ image }) => image))).toEqual(new Set([`sallyport:${version}`]));
  });

  it('have commands of texts alone: in a plain text of YAML, a colon and a space make an object', () => {
    const commandsIn = (value: unknown): readonly unknown[] =>
      typeof value !== 'object' || value === null
        ? []
        : Object.entries(value).flatMap(([name, one]) =>
            name === 'command' || name === 'args' ? [one] : commandsIn(one),
          );
    const commands = commandsIn(all);
    expect(commands.length).toBeGreaterThan(2);
    for (const command of commands) expect(command).toEqual((command as unknown[]).map(String));
  });

  it('set variables that the program reads, to values that it accepts', () => {
    for (const proxy of proxies) {
      const variables = variablesOf(proxy);
      expect(Object.keys(variables).filter((name) => !known.has(name))).toEqual([]);
      expect(parseConfig({}, { ...imageVariables, ...variables })).toMatchObject({ ok: true });
    }
  });

  it('mount every path that a variable names', () => {
    for (const proxy of proxies) {
      const mounts = (proxy.volumeMounts ?? []).map(({ mountPath }) => mountPath);
      const values = Object.values({ ...imageVariables, ...variablesOf(proxy) });
      const paths = values
        .map((value) => String(value).replace(/^unix:/, ''))
        .filter((value) => /^\//.test(value));
      expect(paths.length).toBeGreaterThan(2);
      expect(paths.filter((path) => !mounts.some((mount) => `${path}/`.startsWith(`${mount}/`)))).toEqual([]);
      expect(mounts).toContain(STATE);
    }
    for (const pod of pods) {
      const volumes = (pod.volumes ?? []).map(({ name }) => name);
      const mounted = containersOf(pod).flatMap(({ volumeMounts = [] }) =>
        volumeMounts.map(({ name }) => name),
      );
      expect([...new Set(mounted)].toSorted()).toEqual(volumes.toSorted());
    }
  });

  it('give the agent neither the state, nor secrets, nor the admin socket', () => {
    for (const agent of agents) expect(agent.volumeMounts ?? []).toEqual([]);
    const [, sidecar] = proxies;
    const socket = sidecar && variablesOf(sidecar)['SALLYPORT_ADMIN_LISTEN']?.replace('unix:', '');
    expect(sidecar?.volumeMounts?.find(({ mountPath }) => socket?.startsWith(`${mountPath}/`))?.name).toBe(
      'admin',
    );
  });

  it('run the proxy as the user of the image, and the agent as another one, both without rights', () => {
    const userOf = (pod: PodSpec, one: Container) =>
      one.securityContext['runAsUser'] ?? pod.securityContext['runAsUser'];
    for (const pod of pods)
      for (const one of containersOf(pod)) {
        expect(one.securityContext).toMatchObject({ allowPrivilegeEscalation: false });
        expect(one.securityContext['capabilities']).toMatchObject({ drop: ['ALL'] });
        if (one.name === 'sallyport') expect(String(userOf(pod, one))).toBe(USER);
        if (one.name === 'agent') expect(String(userOf(pod, one))).not.toBe(USER);
        const isRoot = userOf(pod, one) === 0;
        expect(isRoot).toBe(one.name === 'owner-match');
        if (!isRoot)
          expect({ ...pod.securityContext, ...one.securityContext }).toMatchObject({ runAsNonRoot: true });
      }
  });

  it('let the user of the image alone leave the Pod of the sidecar', () => {
    const [rules] = pods.flatMap(containersOf).filter(({ name }) => name === 'owner-match');
    const accepted = [...(rules?.args?.join('') ?? '').matchAll(/skuid (\d+) accept/g)].map(([, uid]) => uid);
    expect(accepted).toEqual([USER]);
    const names = pods.flatMap(({ initContainers = [] }) => initContainers.map(({ name }) => name));
    // Before the agent, and before whatever else could send.
    expect(names).toEqual(['owner-match', 'sallyport']);
  });

  it('use the port of the image, and probe paths that it serves', () => {
    const text = files.map(read).join('\n');
    const ports = [...text.matchAll(/\b(?:containerPort|port): (\d+)/g)].map(([, port]) => port);
    expect(ports.filter((port) => !['53', '80', '443'].includes(port ?? ''))).toEqual(Array(4).fill(PORT));
    const paths = [...text.matchAll(/path: (\/\w+)/g)].map(([, path]) => path);
    expect(new Set(paths)).toEqual(new Set(['/healthz', '/readyz']));
    const served = read('src/proxy/accept/listener.ts');
    for (const path of paths) expect(served).toContain(`'${path}'`);
  });

  it('wait longer for its end than the proxy needs', () => {
    const [first] = pods;
    const proxy = first?.containers[0];
    const parsed = parseConfig({}, { ...imageVariables, ...(proxy && variablesOf(proxy)) });
    if (!parsed.ok) throw new Error('the variables are invalid');
    const { drainDelayMs, timeouts } = parsed.value;
    expect(drainDelayMs).toBeGreaterThan(0);
    expect(first?.terminationGracePeriodSeconds).toBeGreaterThan((drainDelayMs + timeouts.drainMs) / 1000);
  });

  it('have rules that are valid', () => {
    const rules = all.flatMap(({ data }) =>
      data === undefined ? [] : [JSON.parse(data['rules.json'] ?? '')],
    );
    expect(rules).toHaveLength(1);
    expect(parseProxyConfig(rules[0])).toMatchObject({ ok: true, warnings: [] });
  });

  it('let nobody but clients reach the proxy, and clients nothing but the proxy', () => {
    const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies.map(({ metadata }) => metadata.name)).toEqual([
      ...['sallyport', 'sallyport-clients', 'agent-with-sidecar'],
    ]);
    for (const { spec } of policies) expect(spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] });
    const toProxy = [{ podSelector: { matchLabels: { app: 'sallyport' } } }];
    expect(policies[1]?.spec).toMatchObject({ ingress: [], egress: [{ to: toProxy }] });
  });
});

describe('the compose file', () => {
  const [compose] = documentsOf('deploy/compose.yaml');

  it('sets variables that the program reads', () => {
    const { environment } = compose.services.sallyport;
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
    expect(parseConfig({}, { ...imageVariables, ...environment })).toMatchObject({ ok: true });
  });

  it('gives the agent the port of the image, one network, and no volume', () => {
    const { agent, sallyport } = compose.services;
    expect(agent.environment.HTTPS_PROXY).toBe(`http://sallyport:${PORT}`);
    expect([agent.networks, agent.volumes]).toEqual([['inside'], undefined]);
    expect(compose.networks.inside).toEqual({ internal: true });
    expect(sallyport.volumes).toContain(`state:${STATE}`);
  });
});

describe('the unit of systemd', () => {
  const text = read('deploy/sallyport.service');
  const valueOf = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  const variables = Object.fromEntries(
    [...text.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );

  it('sets variables that the program reads, to values that it accepts', () => {
    expect(Object.keys(variables).filter((name) => !known.has(String(name)))).toEqual([]);
    expect(parseConfig({}, variables)).toMatchObject({ ok: true });
  });

  it('starts the launcher with every protection set before the first instruction', () => {
    const [node, ...args] = valueOf('ExecStart').split(' ');
    const [, flags = ''] = /^const FLAGS = (\[.*\]);$/m.exec(readFileSync(launcher, 'utf8')) ?? [];
    expect(node).toMatch(/\/node_modules\/\.bin\/node$/);
    expect(args.slice(0, -2)).toEqual(JSON.parse(flags.replaceAll("'", '"')));
    expect(args.slice(-2)).toEqual(['/opt/sallyport/node_modules/sallyport/bin/sallyport.js', 'proxy']);
  });

  it('writes into its own directories only', () => {
    expect(variables['SALLYPORT_STATE_DIR']).toBe(`/var/lib/${valueOf('StateDirectory')}`);
    expect(variables['SALLYPORT_ADMIN_LISTEN']).toMatch(`unix:/run/${valueOf('RuntimeDirectory')}/`);
    expect([valueOf('ProtectSystem'), valueOf('DynamicUser')]).toEqual(['strict', 'yes']);
  });

  it('waits longer for its end than the proxy needs', () => {
    const parsed = parseConfig({}, variables);
    if (!parsed.ok) throw new Error('the variables are invalid');
    expect(Number(valueOf('TimeoutStopSec')) * 1000).toBeGreaterThan(parsed.value.timeouts.drainMs);
  });
});
