// Which fields belong to which source of a deployment, and which of them never change. Pure.
import { InvalidInput } from '../../../base/domain-error.ts';
import type { Issue } from '../../../base/schema.ts';
import type {
  DeploymentSource,
  SourceConfig,
  SourceRevisionConfig,
} from '../../deployments/deployment-rows.ts';

export type Configs = {
  readonly config: Readonly<Record<string, unknown>>;
  readonly revision: Readonly<Record<string, unknown>>;
  readonly hasReferences: boolean;
};

type Rule = {
  readonly part: 'source_config' | 'source_revision_config';
  readonly name: string;
  readonly sources: readonly string[];
};

/** The other fields belong to every source, or to `github` alone, whose deployments cannot be made here. */
const BELONGING: readonly Rule[] = [
  { part: 'source_config', name: 'custom_url', sources: ['external_docker'] },
  { part: 'source_config', name: 'listener_id', sources: ['external_docker'] },
  { part: 'source_config', name: 'listener_config', sources: ['external_docker'] },
  { part: 'source_config', name: 'install_command', sources: ['internal_source'] },
  { part: 'source_config', name: 'build_command', sources: ['internal_source'] },
  { part: 'source_revision_config', name: 'langgraph_config_path', sources: ['internal_source'] },
  { part: 'source_revision_config', name: 'source_tarball_path', sources: ['internal_source'] },
  { part: 'source_revision_config', name: 'image_uri', sources: ['external_docker', 'internal_docker'] },
  { part: 'source_revision_config', name: 'repo_ref', sources: [] },
];

/** Throws InvalidInput with every field that does not belong to the source. */
export function requireBelonging(
  source: DeploymentSource,
  { config, revision, hasReferences }: Configs,
): void {
  const issues = BELONGING.flatMap(({ part, name, sources }) => {
    const given = (part === 'source_config' ? config : revision)[name];
    if (given === null || given === undefined || sources.includes(source)) return [];
    return [
      issueAt([part, name], `Only deployments from ${sources.join(' or ') || 'github'} have this field`),
    ];
  });
  if (hasReferences && source !== 'external_docker')
    issues.push(issueAt(['secret_references'], 'Only deployments from external_docker have this field'));
  if (issues.length > 0) throw new InvalidInput(issues);
}

/** Throws InvalidInput where an image lacks what it is run by. */
export function requireImage(
  source: DeploymentSource,
  { config, revision }: Omit<Configs, 'hasReferences'>,
): void {
  if (source !== 'external_docker') return;
  const issues = [
    ...(isSet(revision['image_uri']) ? [] : [missing(['source_revision_config', 'image_uri'])]),
    ...(isSet(config['listener_id']) ? [] : [missing(['source_config', 'listener_id'])]),
  ];
  if (issues.length > 0) throw new InvalidInput(issues);
}

function isSet(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '';
}

function missing(path: readonly string[]): Issue {
  return {
    loc: ['body', ...path],
    msg: 'A deployment from external_docker needs this field',
    type: 'missing',
  };
}

export type Stored = {
  readonly name: string;
  readonly source: DeploymentSource;
  readonly source_config: SourceConfig;
};

export type Given = {
  readonly name?: string | null | undefined;
  readonly source?: string | null | undefined;
  readonly revision_source?: string | null | undefined;
  readonly source_config?: Readonly<Record<string, unknown>> | null | undefined;
};

/** Throws InvalidInput with every field that was changed and never changes. One that is repeated as it is passes. */
export function requireUnchanged(stored: Stored, given: Given): void {
  const config: Readonly<Record<string, unknown>> = stored.source_config;
  const namespace = stored.source_config.listener_config?.k8s_namespace;
  const givenConfig = given.source_config ?? {};
  const givenNamespace = (givenConfig['listener_config'] as SourceConfig['listener_config'])?.k8s_namespace;
  const pairs: readonly (readonly [path: readonly string[], stored: unknown, given: unknown])[] = [
    [['name'], stored.name, given.name],
    [['source'], stored.source, given.source],
    [['revision_source'], stored.source, given.revision_source],
    ...['integration_id', 'repo_url', 'deployment_type', 'listener_id'].map(
      (name) => [['source_config', name], config[name], givenConfig[name]] as const,
    ),
    [['source_config', 'listener_config', 'k8s_namespace'], namespace, givenNamespace],
  ];
  const issues = pairs.flatMap(([path, before, after]) => {
    const isChanged = after !== null && after !== undefined && after !== before;
    return isChanged ? [issueAt(path, 'This field cannot be changed')] : [];
  });
  if (issues.length > 0) throw new InvalidInput(issues);
}

function issueAt(path: readonly string[], msg: string): Issue {
  return { loc: ['body', ...path], msg, type: 'value_error' };
}

/** With the fields that are given, also as null; `resource_spec` is replaced as a whole. */
export function mergeConfig<T extends SourceConfig | SourceRevisionConfig>(
  stored: T,
  given: Readonly<Record<string, unknown>> | null | undefined,
): T {
  const changed = Object.entries(given ?? {}).filter(([, value]) => value !== undefined);
  return { ...stored, ...Object.fromEntries(changed) };
}
