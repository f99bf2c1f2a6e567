// `sallyport platform organization create` and `set`: the operator adds an organization, or changes what one may use.
import { InputError } from '../../base/input-error.ts';
import { z } from '../../base/schema.ts';
import type { PlatformConfig } from '../../platform/config.ts';
import { unexpected, missing, type Values } from '../command/declaration.ts';
import { platformCommand } from '../command/platform-commands.ts';

type Flags = Values<typeof platformCommand.options>;

/** Only a key goes to standard output, so that a script can store it. */
export async function runOrganization(
  config: PlatformConfig,
  [action, ...more]: readonly string[],
  flags: Flags,
): Promise<number> {
  const [extra] = more;
  if (extra !== undefined) throw unexpected(platformCommand, extra);
  if (action === undefined)
    throw missing(platformCommand, 'action: organization create, or organization set');
  if (action === 'create') return create(config, flags);
  if (action === 'set') return set(config, flags);
  throw unexpected(platformCommand, action);
}

async function create(config: PlatformConfig, flags: Flags): Promise<number> {
  const { name, ...settings } = readSettings(flags);
  if (name === undefined) throw new InputError('organization create needs the name: --name NAME');
  if (flags.organization !== undefined)
    throw new InputError('--organization belongs to organization set: the id of a new one is chosen');
  const { addOrganization } = await import('../../platform/organization-administration.ts');
  const { organizationId, workspaceId, createdKey } = await addOrganization(config, { name, ...settings });
  process.stderr.write(`organization ${organizationId}\nworkspace    ${workspaceId}\n`);
  process.stderr.write('API key of an administrator (shown only once):\n');
  process.stdout.write(`${createdKey}\n`);
  return 0;
}

async function set(config: PlatformConfig, flags: Flags): Promise<number> {
  const change = readSettings(flags);
  const { organization } = flags;
  if (organization === undefined || !z.uuid().safeParse(organization).success)
    throw new InputError('organization set needs the id of an organization: --organization ID');
  if (Object.values(change).every((value) => value === undefined))
    throw new InputError('organization set needs --name, --plan, --personal or --audit-logs');
  const { setOrganization } = await import('../../platform/organization-administration.ts');
  const { name, plan, isPersonal, canUseAuditLogs } = await setOrganization(config, organization, change);
  const auditLogs = canUseAuditLogs === null ? 'default' : formatSwitch(canUseAuditLogs);
  process.stderr.write(
    `organization ${organization}\nname         ${name}\nplan         ${plan}\npersonal     ${formatSwitch(isPersonal)}\naudit logs   ${auditLogs}\n`,
  );
  return 0;
}

const PLAN = /^[a-z][a-z0-9_-]{0,63}$/;

function readSettings({ name, plan, personal, 'audit-logs': auditLogs }: Flags) {
  if (plan !== undefined && !PLAN.test(plan))
    throw new InputError('--plan must be a name in lower case, such as enterprise');
  return {
    name,
    plan,
    isPersonal: personal === undefined ? undefined : readSwitch('--personal', personal),
    canUseAuditLogs:
      auditLogs === undefined
        ? undefined
        : auditLogs === 'default'
          ? null
          : readSwitch('--audit-logs', auditLogs, ', or default'),
  };
}

function readSwitch(option: string, text: string, more = ''): boolean {
  if (text !== 'yes' && text !== 'no') throw new InputError(`${option} must be yes or no${more}`);
  return text === 'yes';
}

function formatSwitch(isOn: boolean): string {
  return isOn ? 'yes' : 'no';
}
